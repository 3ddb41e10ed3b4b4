# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Puts each of the five wrappers around a model_fn of `models.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.estimator import replicate
from tfplugin.estimator import stale_counter_saver
from tfplugin.hooks import elastic_checkpoint_hook
from tfplugin.optimizers import cross_shard
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.optimizers import tower
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

_RATES = {
    'adagrad': tf1.train.AdagradOptimizer,
    'adam': tf1.train.AdamOptimizer,
    'momentum': lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    'sgd': tf1.train.GradientDescentOptimizer,
}


class Wrapped:
  """What a wrapper adds to one graph of the model; this one adds nothing.

  Attributes:
    figures: Scalar tensors that say what the wrapper does, for the progress
      line; there once the model is built.
    counts: Likewise, where the sum over the processes is shown.
  """

  def __init__(self, options: options_lib.TrainOptions,
               config: tf.estimator.RunConfig):
    """Prepares to build one graph.

    Args:
      options: The settings of the run.
      config: The Estimator's configuration.
    """
    self.options = options
    self.config = config
    self.figures = {}
    self.counts = {}

  def variable_scope(self):
    """Returns the context in which the model's variables are made."""
    return contextlib.nullcontext()

  def optimizer(self) -> tf1.train.Optimizer:
    """Returns the optimizer; called when the model is built."""
    return _RATES[self.options.optimizer](self.options.learning_rate)

  def decorate(self, model_fn: Callable) -> Callable:
    """Returns the model_fn `(features, labels, mode, params)` to call."""
    return model_fn

  def finish(self, spec: tf.estimator.EstimatorSpec):
    """Returns the spec for training with what the wrapper needs besides."""
    return spec


class _ElasticAverage(Wrapped):
  """Trains a copy on each worker and averages the copies."""

  def __init__(self, options: options_lib.TrainOptions,
               config: tf.estimator.RunConfig):
    super().__init__(options, config)
    self._getter = elastic_custom_getter.ElasticAverageCustomGetter(
        f'/job:{config.task_type}/task:{config.task_id}')

  def variable_scope(self):
    return tf1.variable_scope('', custom_getter=self._getter)

  def optimizer(self) -> tf1.train.Optimizer:
    options = self.options
    self._optimizer = elastic_average.ElasticAverageOptimizer(
        super().optimizer(), options.workers + 1, self._getter,
        communication_period=options.communication_period,
        moving_rate=options.moving_rate, rho=options.rho,
        synchronous=options.synchronous,
        # `steps` then means the same as with the other wrappers.
        count_steps='local')
    return self._optimizer

  def finish(self, spec: tf.estimator.EstimatorSpec):
    self.figures = {'elastic distance': self._optimizer.elastic_distance()}
    is_chief = self.config.is_chief
    task_index = 0 if is_chief else self.config.task_id + 1
    hook = self._optimizer.make_session_run_hook(
        is_chief, task_index, time_limit_secs=self.options.start_limit_secs)
    saver = self._optimizer.swapping_saver(
        sharded=True, max_to_keep=self.config.keep_checkpoint_max)
    # It also restores the chief's optimizer state, which is local to it.
    checkpoint_hook = elastic_checkpoint_hook.ElasticCheckpointHook(
        self._optimizer, self.config.model_dir, saver,
        save_secs=self.config.save_checkpoints_secs)
    return spec._replace(
        scaffold=tf1.train.Scaffold(saver=saver),
        training_chief_hooks=(*spec.training_chief_hooks, checkpoint_hook),
        training_hooks=(*spec.training_hooks, hook))


class _DropStale(Wrapped):
  """Drops gradients that come too late."""

  def optimizer(self) -> tf1.train.Optimizer:
    self._optimizer = drop_stale_gradient.DropStaleGradientOptimizer(
        super().optimizer(), self.options.staleness)
    return self._optimizer

  def finish(self, spec: tf.estimator.EstimatorSpec):
    self.counts = {
        'dropped': self._optimizer.num_dropped,
        'applied': self._optimizer.num_applied,
    }
    return stale_counter_saver.with_counters(
        spec, self.config, [self._optimizer])


class _VariableClipping(Wrapped):
  """Keeps the rows of embeddings and the weights of each unit in a ball."""

  def optimizer(self) -> tf1.train.Optimizer:
    # Several workers update the same rows: with the lock, update and clip are
    # one, and no row is ever seen outside the ball.
    self._optimizer = variable_clipping.VariableClippingOptimizer(
        super().optimizer(), _dims_to_clip(tf1.trainable_variables()),
        self.options.max_norm, use_locking=True)
    return self._optimizer

  def finish(self, spec: tf.estimator.EstimatorSpec):
    fraction = self._optimizer.fraction_clipped
    self.figures = {'fraction of rows clipped': fraction}
    return spec


class _Tower(Wrapped):
  """Splits each batch over the logical devices of this process."""

  def optimizer(self) -> tf1.train.Optimizer:
    return tower.TowerOptimizer(super().optimizer)

  def decorate(self, model_fn: Callable) -> Callable:
    devices = [f'/cpu:{i}' for i in range(self.options.devices)]
    return replicate.replicate_model_fn(model_fn, devices=devices)


class _CrossShard(Wrapped):
  """Reduces the gradients of the replicas that the strategy runs."""

  def optimizer(self) -> tf1.train.Optimizer:
    return cross_shard.CrossShardOptimizer(super().optimizer())


def _dims_to_clip(variables: Sequence[tf.Variable]) -> dict:
  """Returns which dims of each weight have their norm bounded."""
  dims = {}
  for variable in variables:
    rank = len(variable.shape)
    if variable.op.name in models.EMBEDDING_TABLES:
      dims[variable.ref()] = [1]
    elif rank > 1:
      # All that leads into one unit.
      dims[variable.ref()] = list(range(rank - 1))
  return dims


_WRAPPED = {
    'none': Wrapped,
    'elastic_average': _ElasticAverage,
    'drop_stale': _DropStale,
    'variable_clipping': _VariableClipping,
    'tower': _Tower,
    'cross_shard': _CrossShard,
}


def wrap(options: options_lib.TrainOptions, model_fn: Callable,
         finish: Callable) -> Callable:
  """Returns `model_fn` with the wrapper of `options` around it.

  Args:
    options: The settings of the run.
    model_fn: One of `models.MODEL_FNS`.
    finish: Called with the spec for training, the wrapper's figures and its
      counts; returns the spec that the Estimator gets.

  Returns:
    A model_fn with the arguments `features, labels, mode, params, config`.
  """

  def wrapped_model_fn(features, labels, mode, params, config):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    wrapped = _WRAPPED[options.wrapper](options, config)
    scope = (wrapped.variable_scope if is_training else contextlib.nullcontext)
    # Functions, not bound methods: params may be copied, `wrapped` must not be.
    params = {**params, 'optimizer': lambda: wrapped.optimizer(),
              'variable_scope': lambda: scope()}
    spec = wrapped.decorate(model_fn)(features, labels, mode, params)
    if not is_training:
      return spec
    return finish(wrapped.finish(spec), wrapped.figures,
                  wrapped.counts)

  return wrapped_model_fn


def make_saved_model_fn(options: options_lib.TrainOptions) -> Callable:
  """Returns a model_fn whose variables are those that training saves.

  It is not for training. Whatever trains saves the model, its optimizer's slots
  and the global step under their plain names.

  Args:
    options: The settings of the run.

  Returns:
    A model_fn with the arguments `features, labels, mode, params`.
  """
  wrapped = Wrapped(options, None)

  def saved_model_fn(features, labels, mode, params):
    return models.MODEL_FNS[options.model](
        features, labels, mode, {**params, 'optimizer': wrapped.optimizer})

  return saved_model_fn
