# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""TPUEstimator that runs its shards on the CPUs or GPUs of the host."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import local_devices
from tfplugin.estimator import tpu_shards

tf1 = tf.compat.v1

_InputPipelineConfig = tf1.estimator.tpu.InputPipelineConfig


class ShardedTPUEstimator(tf1.estimator.tpu.TPUEstimator):
  """TPUEstimator that also has shards without a TPU.

  TPUEstimator with `use_tpu=False` runs one device with the whole batch. Code
  for a shard, such as a CrossShardOptimizer or batch sizes, first runs on a
  TPU. This class builds `TPUConfig.num_shards` shards of each batch over the
  CPUs or GPUs of the host:

    * `params['batch_size']` is the size of a shard in the model_fn. In the
      input_fn it is as on TPU: the size of a shard with PER_SHARD_V1 (one call
      per shard) and PER_HOST_V2 (one call, a dataset of shards' batches), else
      the whole batch.
    * `params['context']` is like a TPUContext: one host, and as many replicas
      as shards. In the input_fn it has the index of the call
      (`current_input_fn_deployment()`, `current_host`).
    * A shard has one device: a `TPUConfig.num_cores_per_replica` above 1 is
      refused, and with it `input_partition_dims`.
    * `tfplugin.CrossShardOptimizer` reduces over the shards and
      `tfplugin.cross_replica_sum` sums over them. An optimizer that is not
      wrapped averages the shards' gradients; for a loss with `Reduction.SUM` it
      sums them.
    * Additions to a variable without an `aggregation`, as for accumulated
      gradients, are the mean over the shards. Any other number that is computed
      from rows and written, metrics included, covers all rows.
    * eval_metrics and host_call get the tensors of all shards, concatenated;
      predictions are concatenated; the loss is the mean over the shards.
    * Variables are made once; checkpoints have the names of one shard.
    * A step of training must have the same number of rows for each shard, else
      it raises. The last batches of an evaluation or a prediction may be
      smaller.
    * An export is made with one shard and a batch of any size.

  With `use_tpu=True` it is TPUEstimator itself. That path needs a TPU: it was
  built and checked as a graph, never run. With one shard it is TPUEstimator
  with `use_tpu=False`, except for `params['context']`.

  `iterations_per_loop` is the number of steps between two returns of a TPU to
  the host. Here every step ends on the host: hooks and host_call run after each
  step, and `steps` or `max_steps` need not be a multiple of it.

  Differences from tf.contrib:
    * In contrib the shards existed on TPU only.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> tf1 = tf.compat.v1
    >>> def model_fn(features, labels, mode, params):
    ...   assert params['batch_size'] == 2
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf.reduce_mean(tf.square(labels - features @ w))
    ...   optimizer = tfplugin.CrossShardOptimizer(
    ...       tf1.train.GradientDescentOptimizer(0.1))
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf1.estimator.tpu.TPUEstimatorSpec(
    ...       mode, loss=loss, train_op=train_op)
    >>> def input_fn(params):
    ...   x = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
    ...   return tf.data.Dataset.from_tensor_slices(
    ...       (x, 2.0 * x)).batch(params['batch_size'], drop_remainder=True)
    >>> estimator = tfplugin.estimator.ShardedTPUEstimator(
    ...     model_fn, use_tpu=False, train_batch_size=4,
    ...     config=tf1.estimator.tpu.RunConfig(
    ...         tpu_config=tf1.estimator.tpu.TPUConfig(num_shards=2)))
    >>> _ = estimator.train(input_fn, max_steps=1)
    >>> # w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 60 / 4
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    3.0

  References:
    `tf.compat.v1.estimator.tpu.TPUEstimator`.
  """

  def __init__(self,
               model_fn: types.ModelFn | None = None,
               model_dir: str | None = None,
               config: tf1.estimator.tpu.RunConfig | None = None,
               params: dict[str, Any] | None = None,
               use_tpu: bool = True,
               train_batch_size: int | None = None,
               eval_batch_size: int | None = None,
               predict_batch_size: int | None = None,
               batch_axis: Sequence[int] | None = None,
               *,
               devices: Sequence[str] | None = None,
               **kwargs):
    """Creates an Estimator with the arguments of TPUEstimator, and `devices`.

    Args:
      model_fn: See `tf.compat.v1.estimator.tpu.TPUEstimator`.
      model_dir: Likewise.
      config: Likewise; its `tpu_config.num_shards` is the number of shards off
        TPU, 1 if it is None.
      params: Likewise.
      use_tpu: Whether there is a TPU.
      train_batch_size: Rows of a step, over all shards; a multiple of their
        number, as are the next two.
      eval_batch_size: Rows of a step of evaluation.
      predict_batch_size: Rows of a step of prediction.
      batch_axis: Off TPU each must be 0: batches are split by rows.
      devices: The devices of the shards off TPU, used in turn. None: the local
        GPUs, or else the logical CPUs.
      **kwargs: As TPUEstimator's other arguments.

    Raises:
      TypeError: Off TPU: `config` is another RunConfig, or a batch size no
        integer.
      ValueError: Off TPU several cores for a shard; or more than one shard, and
        no `train_batch_size`, a batch size that the shards do not divide, or a
        `batch_axis` other than 0.
    """
    shards = 1
    if not use_tpu and config is not None:
      shards = _check_cores(_tpu_config_of(config)).num_shards or 1
    # Before the base class: it wraps the model_fn while it is being made.
    self._on_tpu = use_tpu
    self._shards = shards
    self._shard_devices = devices
    self._batch_sizes = {
        tf.estimator.ModeKeys.TRAIN: train_batch_size,
        tf.estimator.ModeKeys.EVAL: eval_batch_size,
        tf.estimator.ModeKeys.PREDICT: predict_batch_size,
    }
    if shards > 1:
      self._check_shards(batch_axis)
    super().__init__(
        model_fn, model_dir=model_dir, config=config, params=params,
        use_tpu=use_tpu, train_batch_size=train_batch_size,
        eval_batch_size=eval_batch_size, predict_batch_size=predict_batch_size,
        batch_axis=batch_axis, **kwargs)

  def _check_shards(self, batch_axis: Sequence[int] | None) -> None:
    if self._shard_devices is not None:
      self._shard_devices = local_devices.check_devices(self._shard_devices)
    sizes = {f'{mode}_batch_size' if mode != 'infer' else 'predict_batch_size':
             size for mode, size in self._batch_sizes.items()}
    if sizes['train_batch_size'] is None:
      raise ValueError(
          f'`train_batch_size` must be given for {self._shards} shards. '
          'Received: None. Pass the rows of one step over all shards.')
    for name, size in sizes.items():
      if size is not None and not isinstance(size, numbers.Integral):
        raise TypeError(f'`{name}` must be an integer. Received: {size!r}. '
                        'Pass the rows of one step over all shards.')
      if size is not None and (size < 1 or size % self._shards):
        raise ValueError(
            f'`{name}` must be a positive multiple of the number of shards, '
            f'{self._shards}. Received: {size}. Change it, or '
            '`TPUConfig.num_shards`.')
    if batch_axis is not None and any(tf.nest.flatten(batch_axis)):
      raise ValueError(
          '`batch_axis` must be 0 for every tensor where there is no TPU. '
          f'Received: {batch_axis}. Transpose in the model_fn instead.')

  def _assert_members_are_not_overridden(self) -> None:
    """Disables Estimator's check against subclasses."""

  def _augment_model_fn(self, model_fn, batch_axis):
    """Puts the shards inside TPUEstimator's wrapping of a model_fn."""
    whole = super()._augment_model_fn(model_fn, batch_axis)
    if self._on_tpu:
      return whole
    shard = (tpu_shards.shard_model_fn(
        model_fn, self._shards, self._shard_devices) if self._shards > 1
             else tpu_shards.with_context(model_fn))
    sharded = super()._augment_model_fn(shard, batch_axis)

    def augmented(features, labels, mode, config, params):
      # Serving receives any number of rows, down to one.
      is_export = not self._is_input_fn_invoked
      return (whole if is_export else sharded)(
          features, labels, mode, config, params)

    return augmented

  def _call_input_fn(self, input_fn, mode, input_context=None):
    """Returns the batch of all shards, as TPUConfig describes it."""
    call = functools.partial(
        super()._call_input_fn, mode=mode, input_context=input_context)
    if self._on_tpu:
      return call(input_fn)
    num_calls, batch_size = self._deployment(mode)
    results = [
        call(_with_params(input_fn, batch_size, tpu_shards.ShardContext(
            self._shards, index, num_calls))) for index in range(num_calls)]
    if num_calls > 1:
      return _join(results)
    if batch_size is not None:
      # A TPU ends the training where some shards have no batch left.
      return _check_dataset(results[0]).rebatch(
          self._batch_sizes[mode],
          drop_remainder=mode == tf.estimator.ModeKeys.TRAIN)
    return results[0]

  def _deployment(self, mode: str) -> tuple[int, int | None]:
    """Returns how often an input_fn is called, and for how many rows.

    None as the number of rows is the whole batch.
    """
    if self._shards == 1:
      return 1, None
    if self._batch_sizes[mode] is None:
      name = 'predict' if mode == tf.estimator.ModeKeys.PREDICT else mode
      raise ValueError(
          f'`{name}_batch_size` must be given to {name} with {self._shards} '
          'shards. Received: None. Pass it to the constructor.')
    size_of_shard = self._batch_sizes[mode] // self._shards
    deployment = self.config.tpu_config.per_host_input_for_training
    if deployment == _InputPipelineConfig.PER_HOST_V2:
      return 1, size_of_shard
    if (deployment == _InputPipelineConfig.PER_SHARD_V1 and
        mode == tf.estimator.ModeKeys.TRAIN):
      return self._shards, size_of_shard
    return 1, None


def _tpu_config_of(config: Any) -> tf1.estimator.tpu.TPUConfig:
  if not isinstance(config, tf1.estimator.tpu.RunConfig):
    raise TypeError(
        '`config` must be a `tf.compat.v1.estimator.tpu.RunConfig`. '
        f'Received: {config!r}. It takes what `tf.estimator.RunConfig` takes, '
        'and `tpu_config`.')
  return config.tpu_config


def _check_cores(tpu_config: tf1.estimator.tpu.TPUConfig,
                 ) -> tf1.estimator.tpu.TPUConfig:
  """Raises ValueError if a shard is to be on several cores."""
  if (tpu_config.num_cores_per_replica or 1) > 1:
    raise ValueError(
        '`TPUConfig.num_cores_per_replica` must be None or 1 where there is no '
        'TPU: a shard is on one device. Received: '
        f'{tpu_config.num_cores_per_replica}. Leave it out, and '
        '`input_partition_dims`; the number of shards is `num_shards` alone.')
  return tpu_config


def _with_params(input_fn: Callable, batch_size: int | None,
                 context: tpu_shards.ShardContext) -> Callable:
  """Returns `input_fn` with `params` as on a TPU."""

  @functools.wraps(input_fn)
  def called(**kwargs):
    params = {**kwargs['params'], 'context': context}
    if batch_size is not None:
      params['batch_size'] = batch_size
    return input_fn(**{**kwargs, 'params': params})

  called.__signature__ = inspect.signature(input_fn)
  return called


def _join(results: Sequence[Any]):
  """Joins the results of the calls for each shard into one input."""

  def concat(*parts):
    return tpu_shards.concat('input', parts)

  if isinstance(results[0], tf.data.Dataset):
    return tf.data.Dataset.zip(tuple(results)).map(concat)
  return concat(*results)


def _check_dataset(result: Any) -> tf.data.Dataset:
  if not isinstance(result, tf.data.Dataset):
    raise TypeError(
        '`input_fn` must return a `tf.data.Dataset` with PER_HOST_V2. '
        f'Received: {result!r}. Return a dataset, or set '
        '`TPUConfig.per_host_input_for_training=True`.')
  return result
