# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several devices of one process as one: towers in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_config
from tfplugin.distribute import local_devices
from tfplugin.distribute import refusal_mixins
from tfplugin.distribute.towers import loss_reduction_argument
from tfplugin.distribute.towers import tower_extended

tf1 = tf.compat.v1


class TowerStrategy(refusal_mixins.NoKerasSessions, tf1.distribute.Strategy,
                    tf.distribute.Strategy):
  """Strategy of several devices of one process, with the numbers of one device.

  Choose it instead of `MirroredStrategy` where checkpoints and variables must
  be as on one device, or batches are not divisible. Choose
  `tfplugin.replicate_model_fn` to split the batches of the input_fn instead of
  giving one to each device (a *tower*).

  `RunConfig(train_distribute=TowerStrategy())` needs no change of the model_fn,
  and neither does `eval_distribute`. Each tower takes one batch of the
  input_fn. All numbers are computed from these batches, joined in order. Loss,
  gradients, metrics, summaries and writes are as on one device with the same
  rows. If the last batches are fewer than the towers, some towers get no rows.
  If the size of a batch is static (`drop_remainder=True`), these last batches
  are left out.

  In a graph the model is built once, as by `tfplugin.replicate_model_fn`. Ops
  that compute each row separately are repeated in each tower. All other ops run
  once, on the rows of all towers. So a function passed to `run` has one
  replica, whose batch holds the rows of all towers, and returns one value for
  them. Rows of different length are padded with zeros. If the batches have a
  scalar, the scalar of the first batch is used. A warning names scalars that
  may differ. Batch normalisation normalises within a tower and weights moving
  statistics by rows. `tf.keras.layers.BatchNormalization(synchronized=True)`
  normalises over all towers.

  In eager execution, and in a `tf.function` there, each tower is a replica.
  Gradients are summed as in TensorFlow's strategies. `Model.fit` uses the mean
  over the batch only if all towers get equally many rows: Keras has no other
  weights.

  Variables created: the strategy adds none. The model's variables are made
  once, on the CPU (on the device itself, if there is only one), with the names
  of one device.

  Supported: v1 optimizers of any class, dense and sparse gradients, partitioned
  variables, variables of `get_variable`, `tf.layers`, Keras layers and
  `tf.Variable`.

  Differences from tf.contrib: it had no such strategy.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> tf1 = tf.compat.v1
    >>> def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf1.losses.mean_squared_error(labels, features @ w)
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.1)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   x = np.array([[1.0], [2.0], [3.0]], np.float32)
    ...   return tf.data.Dataset.from_tensors((x, 2.0 * x)).repeat(2)
    >>> strategy = tfplugin.distribute.TowerStrategy(['/cpu:0', '/cpu:0'])
    >>> config = tf.estimator.RunConfig(train_distribute=strategy)
    >>> estimator = tf.estimator.Estimator(model_fn, config=config)
    >>> _ = estimator.train(input_fn)
    >>> # One step: w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 28 / 3
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    1.8667
  """

  def __init__(self, devices: Optional[Sequence[str]] = None,
               loss_reduction: Optional[str] = None):
    """Makes a strategy over devices of this process.

    Args:
      devices: Device strings, one per tower. By default the local GPUs, or else
        the logical CPUs, found without initialising them.
      loss_reduction: The reduction of the model's loss, one of
        `tf.compat.v1.losses.Reduction`, or None. No number depends on it.

    Raises:
      TypeError: `devices` is not a list of strings.
      ValueError: `devices` is empty, or `loss_reduction` is NONE or unknown. On
        first use: this process has no such device. `TF_CONFIG` is wrong, or
        an Estimator trains in a cluster of several tasks.
    """
    loss_reduction_argument.check(loss_reduction)
    super().__init__(self._make_extended(
        local_devices.check_devices(devices)))

  def _make_extended(self, devices: Sequence[str]):
    # Not in `__init__`: decorators, whose strategies are subclasses, train in
    # clusters as they are.
    cluster_config.rewrite()
    return tower_extended.TowerExtended(self, devices)

  @property
  def _scale_loss_for_estimator(self) -> bool:
    # Estimator asks the optimizers to divide the loss by the number of
    # replicas. Towers are weighted by their rows instead.
    return False

  @_scale_loss_for_estimator.setter
  def _scale_loss_for_estimator(self, value: bool) -> None:
    del value


def current_tower() -> int:
  """Returns the index of the shard that the caller is built in.

  The index is an int that is known while the graph is built. It counts the
  shards of `tfplugin.estimator.cross_shard` and ShardedTPUEstimator. It is 0
  everywhere else: `replicate_model_fn` and TowerStrategy build one model.

  Example:
    >>> import tfplugin
    >>> tfplugin.distribute.current_tower()
    0
  """
  return getattr(tf.distribute.get_replica_context(), 'tower', 0)
