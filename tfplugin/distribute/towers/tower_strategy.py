# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several devices of one process as one: towers in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import local_devices
from tfplugin.distribute import refusals
from tfplugin.distribute.towers import tower_extended
from tfplugin.distribute.towers import tower_run
from tfplugin.distribute.towers import tower_weights

tf1 = tf.compat.v1


class TowerStrategy(refusals.NoKerasSessions, tf1.distribute.Strategy,
                    tf.distribute.Strategy):
  """Trains on several devices of one process with the numbers of one device.

  Every device (a *tower*) computes its part of a batch; all of them share one
  copy of each variable, and an optimizer updates it once:

    loss = sum{towers} weight[tower] * loss[tower]
    gradient = sum{towers} weight[tower] * gradient[tower]

  where weight[tower] is the tower's share of the rows, so that towers may get
  different numbers of them. In a graph a term of the loss that is a sum over
  the rows is added up: the ops that made the loss tell. Losses of
  `tf.compat.v1.losses` that divide by a count divide by the count of all
  towers. Choose it over `MirroredStrategy` where checkpoints and variables must
  be as on one device, or batches are not divisible; choose
  `tfplugin.replicate_model_fn` to split the batches of the input_fn instead of
  giving one to each tower.

  `RunConfig(train_distribute=TowerStrategy())` needs no change of the model_fn.
  Each tower takes one batch of the input_fn; these batches together, in order,
  are the batch that the numbers belong to. Where the last ones are fewer than
  the towers, some towers get none of the rows; if the size of a batch is static
  (`drop_remainder=True`), these last batches are left out.

  In a graph: a gradient with respect to a variable is summed over the towers
  where `tf.gradients` computes it; a variable that is assigned to in the towers
  takes the value of one device, of sums and means over the rows, or the
  aggregation that it asks for, with means weighted by the rows; what is neither
  is refused. Batch normalisation normalises within a
  tower, `tf.keras.layers.BatchNormalization(synchronized=True)` over all.

  Not supported: `tf.recompute_grad` with `loss_reduction=SUM`, whose gradients
  are summed over the towers twice; means are right.

  In a `tf.function` and in eager execution gradients are summed over the towers
  as TensorFlow's strategies do, and `Model.fit` is a mean over the batch where
  its towers get as many rows each; Keras knows no other weights.

  Variables created: none of its own. The model's variables are made once, on
  the CPU (on the device itself, if there is one only), with the names of one
  device.

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
      loss_reduction: How the model reduces its loss in a graph, one of
        `tf.compat.v1.losses.Reduction`: with SUM losses of towers are added up,
        with the others they are averaged. By default it is found for each term
        of a loss; a loss that is neither sum nor mean is refused.

    Raises:
      TypeError: `devices` is not a list of strings.
      ValueError: It is empty, or `loss_reduction` is NONE or unknown. When it
        is used: this process has no such device.
    """
    tower_weights.check_reduction(loss_reduction)
    super().__init__(tower_extended.TowerExtended(
        self, local_devices.check_devices(devices), loss_reduction))

  @property
  def num_replicas_in_sync(self) -> int:
    """The number of towers; where one is built into a graph, 1.

    Keras and the heads of Estimator divide a loss by it, and here the weight of
    a tower does that already.
    """
    if tower_run.current_tower() is not None:
      return 1
    return super().num_replicas_in_sync

  @property
  def _scale_loss_for_estimator(self) -> bool:
    # Estimator asks the optimizers to divide the loss by the number of
    # replicas. Towers are weighted by their rows instead.
    return False

  @_scale_loss_for_estimator.setter
  def _scale_loss_for_estimator(self, value: bool) -> None:
    del value

  def build_towers(self, fn: Callable[[int], Any],
                   weights: tower_weights.TowerWeights,
                   sum_gradients: bool = True,
                   batch: Optional[Sequence[Any]] = None,
                   evaluates: bool = False,
                   ) -> tuple[tower_run.TowerRun, list[Any]]:
    """Builds `fn` in every tower; call it in the scope of the strategy.

    Decorators of a model_fn are made of it.

    Args:
      fn: Called with the index of the tower, in that tower.
      weights: How much each tower counts.
      sum_gradients: Whether `tf.gradients` in a tower sums over the towers.
      batch: For each tower the tensors that it is given; None: not known.
      evaluates: Whether towers update all local variables one after the other,
        as metrics; else those of METRIC_VARIABLES.

    Returns:
      The run, and the result of `fn` in each tower.
    """
    return self.extended.build_towers(
        fn, weights, sum_gradients, batch, evaluates)


def current_tower() -> int:
  """Returns the index of the tower that the caller is built in.

  An int, known while the graph is built; 0 where there are no towers. A
  model_fn may log or name things with it; its results must not depend on it.

  Example:
    >>> import tfplugin
    >>> tfplugin.distribute.current_tower()
    0
  """
  return getattr(tf.distribute.get_replica_context(), 'tower', 0)
