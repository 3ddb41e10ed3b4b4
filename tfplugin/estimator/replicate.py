# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorator for a model_fn that runs on several devices of one process."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import local_devices
from tfplugin.distribute.towers import split_graph
from tfplugin.distribute.towers import split_model
from tfplugin.estimator import batches
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib

tf1 = tf.compat.v1

_MODES = (tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL,
          tf.estimator.ModeKeys.PREDICT)
_VARIABLE_DEVICE = '/device:CPU:0'


def replicate_model_fn(
    model_fn: types.ModelFn | None = None,
    loss_reduction: str | None = None,
    devices: Sequence[str] | None = None,
    *,
    broadcast: Collection[str] = (),
    replicate_eval: bool = True,
    batch_norm: str = 'mean',
) -> types.ModelFn:
  """Returns a model_fn that splits each batch over several devices.

  The batch is split along its first dimension, one part for each device (a
  *tower*). Ops that compute each row by itself run in each tower. All towers
  share one set of variables, and each variable is updated once. Loss,
  gradients, metrics, predictions and exports are as on one device with the
  whole batch. That holds for every batch size: not divisible by the number of
  towers, smaller than it, or not known before the step. The model_fn stays as
  it is, with a plain `tf.compat.v1.train` optimizer or a
  `tfplugin.TowerOptimizer`. Checkpoints have the names of one device. Training
  on one device can continue from them, and the other way round.

  Rules:
    * The model_fn is built once, for the whole batch, on the first device. Ops
      that compute each row by itself are then made again in each tower. All
      others (a loss, a metric, a write to a variable, a condition, a summary,
      Python code) run once, on the rows of all towers. So every number is as on
      one device, however it is computed.
    * The model_fn finds the same graph as on one device: names, collections,
      contexts. The ops of tower i are in `tower_<i>`. The loss is the tensor
      `loss`.
    * An op that is not known to compute each row by itself is right, but not
      split: a loop, a condition, a `tf.function`, a custom gradient, the
      components of a sparse or ragged tensor. Later ops are split again where
      they have rows and use a variable. A warning names the ops that use a
      variable and are not split.
    * `tf.gradients` is split as the ops behind it are, by variables and by
      rows. A `tf.GradientTape` in the model_fn runs once.
    * Random ops draw once, the same numbers as on one device.
    * Variables are made on the CPU, or on the device if there is only one.
    * Scalars in the batch go to every tower.
    * Where the batch has fewer rows than there are towers, the other towers
      compute its last row again. Their results are left out.

  Args:
    model_fn: As for `tf.estimator.Estimator`; `features` and `labels` are
      nests of tensors `[batch, ...]`, dense, sparse or ragged. Left out, a
      decorator is returned, for `@replicate_model_fn(devices=...)`.
    loss_reduction: The reduction of the loss in the model_fn, one of
      `tf.compat.v1.losses.Reduction`, as in `tf.contrib`. It is optional: no
      number depends on it.
    devices: Device strings, one per tower. By default the local GPUs, or else
      the logical CPUs, found without initialising them.
    broadcast: Keys of features or labels that every tower gets whole.
    replicate_eval: Whether to split the batch in EVAL too; False runs the
      evaluation on the first device.
    batch_norm: The batch normalisation in training. 'mean': it normalises
      within a tower, and moving statistics are the means over the towers,
      weighted by their rows. 'first': likewise, but moving statistics come from
      the first tower. 'sync': it normalises with the moments of the whole
      batch, as one device does, and on one device. It applies to the layers of
      Keras and `tf.layers`, and to `tf.nn.fused_batch_norm`. Any other
      normalisation of the model_fn is as with 'sync', and so is one of several
      views of each row, as in `tf.concat([a, b], 0)`.

  Returns:
    A model_fn `(features, labels=None, mode=None, params=None, config=None)`.
    `model_fn` gets those of them that it takes.

  Raises:
    TypeError: `model_fn` is not callable, `devices` not a list of strings.
    ValueError: `loss_reduction` is NONE or unknown, or so is `batch_norm`;
      `devices` is empty. When called: a batch without a first dimension, labels
      for a model_fn that takes none, no loss, no train_op.
    RuntimeError: When called: inside a strategy.

  Differences from tf.contrib:
    * Every batch size works, in every mode, and every loss.
    * The model_fn is built once, and `TowerOptimizer` is not needed.
    * Variables are shared however they are made, with no need for reuse.
    * SUM_BY_NONZERO_WEIGHTS divides by the count of the batch, not of a tower.
    * Metrics equal the metrics of one device, additive or not.
    * Class labels of a ClassificationOutput are concatenated as scores are, and
      so are the predictions of EVAL.
    * Nothing is kept in the graph's collections.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.replicate_model_fn(devices=['/cpu:0', '/cpu:0'])
    ... def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf1.losses.mean_squared_error(labels, features @ w)
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.1)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   x = np.array([[1.0], [2.0], [3.0]], np.float32)
    ...   return tf.data.Dataset.from_tensors((x, 2.0 * x))
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> # w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 28 / 3
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    1.8667

  References:
    The function of the same name in `tf.contrib.estimator` of TensorFlow 1.15.
  """
  split_model.check_loss_reduction(loss_reduction)
  if batch_norm not in split_graph.WEIGHTS_OF_MOMENTS:
    names = tuple(split_graph.WEIGHTS_OF_MOMENTS)
    raise ValueError(f'`batch_norm` must be one of {names}. '
                     f'Received: {batch_norm!r}. Leave it out for the mean.')
  broadcast = batches.check_broadcast(broadcast)
  if devices is not None:
    devices = local_devices.check_devices(devices)

  def build_towers(call: model_fn_lib.ModelFnCall):
    is_eval = call.mode == tf.estimator.ModeKeys.EVAL
    names = devices or local_devices.local_devices()
    if is_eval and not replicate_eval:
      names = names[:1]
    return _run_towers(call, names, broadcast, batch_norm)

  return model_fn_lib.decorate(
      model_fn, build_towers, decorator_stack.REPLICATE, takes_all=True,
      alone_in=_MODES)


def _run_towers(call: model_fn_lib.ModelFnCall, devices: Sequence[str],
                broadcast: Collection[str], batch_norm: str):
  """Builds the model once, and moves its row-wise ops to the devices."""
  batch = batches.batch_of_towers(
      call.arguments['features'], call.arguments.get('labels'), len(devices),
      broadcast)
  features, labels = batch.values
  build = functools.partial(call, features=features, labels=labels)
  with tf1.device(devices[0]), _variables_on_cpu(devices):
    spec = build() if len(devices) == 1 else split_model.build(
        build, batch, devices, batch_norm)
    return _with_name(spec)


def _with_name(spec: Any) -> Any:
  """Returns `spec` with a loss that is the tensor `loss`."""
  if not hasattr(spec, '_replace'):
    raise TypeError(
        '`model_fn` must return a `tf.estimator.EstimatorSpec`. Received: '
        f'{spec!r}. Return one in every mode.')
  if spec.loss is None or spec.loss.name == 'loss:0':
    return spec
  with tf.name_scope(''):
    return spec._replace(loss=tf.identity(spec.loss, name='loss'))


def _variables_on_cpu(devices: Sequence[str],
                      ) -> contextlib.AbstractContextManager:
  """Makes variables on the CPU, or on the device if there is only one."""
  if len(devices) == 1:
    return contextlib.nullcontext()

  def create(next_creator, **kwargs):
    if kwargs.get('colocate_with') is not None:
      return next_creator(**kwargs)
    with tf1.device(_VARIABLE_DEVICE):
      return next_creator(**kwargs)

  return tf.variable_creator_scope(create)
