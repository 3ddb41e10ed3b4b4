# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hooks of `ElasticAverageOptimizer`: start, checkpoints and a summary."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_initialization

tf1 = tf.compat.v1

_DISTANCE_TAG = 'elastic_distance'


class ElasticAverageHook(elastic_initialization.ElasticInitialization):
  """Copies the centre's values to a worker's copies in each new session.

  The same as `optimizer.make_session_run_hook`. Every worker needs it, and the
  chief. A worker that starts late, or restarts after a failure, begins at the
  centre. With `synchronous=True` the workers then wait for each other, once in
  the life of the parameter servers. Later workers do not wait.

  Raises:
    TimeoutError: from `after_create_session`, when the other workers did not
      start within the limit; the message names them.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> with tf.Graph().as_default():
    ...   getter = tfplugin.ElasticAverageCustomGetter('')
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.1), 1, getter)
    ...   hook = hooks.ElasticAverageHook(optimizer, task_index=0)
  """


class ElasticCheckpointHook(tf1.train.CheckpointSaverHook):
  """Writes checkpoints that a plain Estimator can evaluate, export and train.

  They hold the centre under the names of the model's variables, the averaged
  statistics, the other global variables with `global_step`, and the chief's
  optimizer state. Only the chief needs the hook. With it in
  `training_chief_hooks` Estimator adds no checkpoint hook of its own.

  The Scaffold restores, also the chief's optimizer state, and needs the same
  saver.

  Differences from tf.contrib: there was no such hook. A default Saver wrote
  `global_center_variable/<name>` alone, a name that no evaluation reads.

  Example, a whole model_fn for a cluster or a single process:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> def model_fn(features, labels, mode, params, config):
    ...   if mode != tf.estimator.ModeKeys.TRAIN:  # Nothing elastic here.
    ...     predictions = tf.compat.v1.layers.dense(features, 1, name='out')
    ...     loss = tf.compat.v1.losses.mean_squared_error(labels, predictions)
    ...     return tf.estimator.EstimatorSpec(mode, predictions, loss)
    ...   # In a cluster the chief counts as one of the workers, with number 0.
    ...   in_cluster = config.num_ps_replicas > 0
    ...   device = f'/job:{config.task_type}/task:{config.task_id}'
    ...   task_index = 0 if config.is_chief else config.task_id + 1
    ...   getter = tfplugin.ElasticAverageCustomGetter(
    ...       device if in_cluster else '')
    ...   with getter.scope():
    ...     predictions = tf.compat.v1.layers.dense(features, 1, name='out')
    ...   loss = tf.compat.v1.losses.mean_squared_error(labels, predictions)
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.AdamOptimizer(0.01),
    ...       num_worker=max(config.num_worker_replicas, 1),
    ...       ea_custom_getter=getter, communication_period=5, rho=0.0)
    ...   train_op = optimizer.minimize(
    ...       loss, tf.compat.v1.train.get_global_step())
    ...   saver = optimizer.swapping_saver()  # After the train op.
    ...   return tf.estimator.EstimatorSpec(
    ...       mode, loss=loss, train_op=train_op,
    ...       scaffold=tf.compat.v1.train.Scaffold(saver=saver),
    ...       training_hooks=[
    ...           optimizer.make_session_run_hook(config.is_chief, task_index)],
    ...       training_chief_hooks=[
    ...           hooks.ElasticCheckpointHook(
    ...               optimizer, config.model_dir, saver, save_steps=100),
    ...           hooks.ElasticDistanceHook(optimizer, config.model_dir)])
    >>> def input_fn():
    ...   x = tf.constant([[1.0], [2.0]])
    ...   return tf.data.Dataset.from_tensors((x, 3.0 * x)).repeat(20)
    >>> estimator = tf.estimator.Estimator(model_fn, 'a_model_dir')
    >>> _ = estimator.train(input_fn)
    >>> estimator.get_variable_names()
    ['beta1_power', 'beta2_power', 'global_step', 'out/bias', 'out/bias/Adam',
     'out/bias/Adam_1', 'out/kernel', 'out/kernel/Adam', 'out/kernel/Adam_1']
    >>> int(estimator.get_variable_value('global_step'))  # 20 / 5
    4
  """

  def __init__(self,
               optimizer: elastic_average.ElasticAverageOptimizer,
               checkpoint_dir: str,
               saver: tf1.train.Saver | None = None,
               save_secs: float | None = None,
               save_steps: int | None = None,
               checkpoint_basename: str = 'model.ckpt',
               listeners: Sequence | None = None):
    """Prepares to save; make the hook after the train op.

    Args:
      optimizer: The optimizer that trains the model.
      checkpoint_dir: The directory of the checkpoints.
      saver: The Scaffold's saver; None makes a `swapping_saver`.
      save_secs: The interval of saves in seconds.
      save_steps: The interval of saves in global steps. Without this and
        `save_secs` the interval is 600 seconds, as in Estimator.
      checkpoint_basename: The file name without the step.
      listeners: `tf.compat.v1.train.CheckpointSaverListener`s.

    Raises:
      RuntimeError: the model does not exist yet.
      ValueError: both `save_secs` and `save_steps` are given.
    """
    if save_secs is None and save_steps is None:
      save_secs = 600
    super().__init__(
        checkpoint_dir, save_secs=save_secs, save_steps=save_steps,
        saver=optimizer.swapping_saver() if saver is None else saver,
        checkpoint_basename=checkpoint_basename,
        listeners=list(listeners or ()))


class ElasticDistanceHook(tf1.train.SummarySaverHook):
  """Writes |local - centre| over all trainable variables as a summary.

  A worker reports the loss of its own copy, while the centre is saved. The
  scalar `elastic_distance` is the distance between the two. If the distance
  grows without bound, the moving rate is too small for `communication_period`,
  or out of the stable range. Each write reads the whole centre once.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> with tf.Graph().as_default():
    ...   _ = tf.compat.v1.train.create_global_step()
    ...   getter = tfplugin.ElasticAverageCustomGetter('')
    ...   with getter.scope():
    ...     w = tf.Variable([3.0, 4.0])
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.1), 1, getter)
    ...   hook = hooks.ElasticDistanceHook(
    ...       optimizer, 'a_model_dir', save_steps=50)
  """

  def __init__(self, optimizer: elastic_average.ElasticAverageOptimizer,
               output_dir: str, save_steps: int = 100):
    """Prepares to write; make the hook after the model.

    Args:
      optimizer: The optimizer that trains the model.
      output_dir: The directory of the event files: the model_dir.
      save_steps: The interval of the points in global steps.

    Raises:
      RuntimeError: the model does not exist yet.
    """
    # In no collection, as other hooks write the summaries of the collections.
    summary = tf1.summary.scalar(_DISTANCE_TAG, optimizer.elastic_distance(),
                                 collections=[])
    super().__init__(save_steps=save_steps, output_dir=output_dir,
                     summary_op=summary)
