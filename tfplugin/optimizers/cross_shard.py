# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reduces gradients over shards before the wrapped optimizer applies them."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf
from absl import logging

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.shards import cross_replica
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.shards import reduced_gradients
from tfplugin.distribute.towers import tower_run
from tfplugin.ops import shard_reduction
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class CrossShardOptimizer(wrapper.OptimizerWrapper,
                          tf1.tpu.CrossShardOptimizer):
  """Sums or averages the shards' gradients, once, when they are applied.

  For a model that computes on several shards of a batch and is to train as one
  computation: TPU shards, the replicas of a `tf.distribute` strategy, or
  towers. The rule, for a group of n shards with losses loss[1] .. loss[n]:

    compute_gradients:  gradient[i] = d loss[i] / d variable * scale
    apply_gradients:    gradient = sum over i of gradient[i]
    scale = 1 / n with MEAN, 1 with SUM

  The scaling belongs to `compute_gradients`: gradients that come from
  `tf.gradients` and go to `apply_gradients` are summed. Where the strategy
  divides the loss by the number of replicas itself, as it does under an
  Estimator, that division is taken into account: `reduction` means the same
  everywhere. The towers of `replicate_model_fn` are one computation whose
  gradients are those of the whole batch already: there nothing is scaled or
  summed again. The shards of `ShardedTPUEstimator` share their variables, which
  follow the group of shard 0: so does the checkpoint that a TPU writes.

  With one shard the gradients go to the wrapped optimizer unchanged; outside of
  every sharding context a warning is logged, once per optimizer.

  Supported: graph, eager execution with a callable loss, tf.function; dense and
  sparse gradients (rows are gathered, not made dense); partitioned variables;
  strategies with a copy of the variables per replica, and without groups also
  those that share them. An optimizer inside that replaces `apply_gradients`
  altogether and assigns by itself is called once with the reduced gradients.
  The TPU path has been checked as a graph; it was built, not run.

  Differences from tf.contrib:
    * Works off TPU, where `tf.compat.v1.tpu.CrossShardOptimizer` fails with
      "No OpKernel was registered to support Op 'CrossReplicaSum'".
    * One shard adds no op; the original adds a CrossReplicaSum.
    * Sparse gradients stay sparse; the original makes them dense.
    * A bad `group_assignment` is refused at construction, as far as it can be
      known there.

  Example:
    >>> strategy = tf.distribute.MirroredStrategy(
    ...     ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())
    >>> with strategy.scope():
    ...   weight = tf.Variable(1.0)
    >>> optimizer = CrossShardOptimizer(
    ...     tf.compat.v1.train.GradientDescentOptimizer(0.1))
    >>> @tf.function
    ... def step():
    ...   def shard():
    ...     index = tf.distribute.get_replica_context(
    ...         ).replica_id_in_sync_group
    ...     x = tf.cast(index, tf.float32) * 2.0 + 1.0  # 1 and 3
    ...     optimizer.minimize(lambda: weight * x, var_list=[weight])
    ...   strategy.run(shard)
    >>> step()
    >>> round(float(weight.read_value()), 6)  # 1 - 0.1 * (1 + 3) / 2
    0.8

  References:
    `tf.compat.v1.tpu.CrossShardOptimizer`, which this is a subclass of.
  """

  def __init__(self,
               opt: tf1.train.Optimizer,
               reduction: str = shard_reduction.MEAN,
               name: str = 'CrossShardOptimizer',
               group_assignment: groups_lib.GroupAssignment = None):
    """Wraps `opt`.

    Args:
      opt: The v1 optimizer that applies the reduced gradients.
      reduction: `tf.compat.v1.losses.Reduction.MEAN` or `SUM`, over the shards
        of a group. MEAN, as the loss of a shard usually is a mean over its part
        of the batch.
      name: Names ops, never a variable.
      group_assignment: List of lists of shard indices that reduce together; all
        groups of one size. None reduces over all shards.

    Raises:
      TypeError: `opt` is not an instance of a v1 optimizer.
      ValueError: `reduction` is neither, or `group_assignment` is no partition
        of the shards in equal groups.
    """
    shard_reduction.check(reduction)
    groups_lib.check(group_assignment)
    super().__init__(opt, False, name)
    # Under the names that `tf.compat.v1.tpu.CrossShardOptimizer` gives them.
    self._opt = opt
    self._reduction = reduction
    self._group_assignment = group_assignment
    self._has_warned = False

  def compute_gradients(
      self,
      loss: types.LossLike,
      var_list=None,
      gate_gradients: int = tf1.train.Optimizer.GATE_OP,
      aggregation_method: Optional[int] = None,
      colocate_gradients_with_ops: bool = False,
      grad_loss: Optional[tf.Tensor] = None,
  ) -> types.GradsAndVars:
    """Computes this shard's gradients; with MEAN, of its part of the mean.

    Args:
      loss: This shard's loss: a tensor, or a callable that returns it.
      var_list: See base class.
      gate_gradients: See base class.
      aggregation_method: See base class.
      colocate_gradients_with_ops: See base class.
      grad_loss: See base class.

    Returns:
      Pairs of a gradient (or None) and a variable. Clipping them by their norm
      is clipping per shard, before the sum.

    Raises:
      ValueError: `group_assignment` does not fit the number of shards.
      RuntimeError: Called in the cross-replica context of a strategy.
    """
    self._group_size('compute_gradients')

    def scaled_loss():
      # After the loss is built: the last reduction used decides what
      # TensorFlow divides by.
      value = loss()
      return self._scale(value)

    return super().compute_gradients(
        scaled_loss if callable(loss) else self._scale(loss),
        var_list=var_list,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        grad_loss=grad_loss)

  def apply_gradients(self,
                      grads_and_vars: types.GradsAndVars,
                      global_step: Optional[tf.Variable] = None,
                      name: Optional[str] = None,
                      skip_gradients_aggregation: bool = False):
    """Sums the gradients over the shards of each group and applies the sums.

    Args:
      grads_and_vars: This shard's gradients; tensors, `IndexedSlices` or None.
        Every shard passes the same variables in the same order.
      global_step: Incremented by 1 per step, or None.
      name: Of the returned op.
      skip_gradients_aggregation: True where the gradients are reduced already.

    Returns:
      See base class.

    Raises:
      ValueError: No gradient, or `group_assignment` does not fit the number of
        shards.
      RuntimeError: Called in the cross-replica context of a strategy.
    """
    grads_and_vars = list(grads_and_vars)
    if skip_gradients_aggregation:
      return super().apply_gradients(grads_and_vars, global_step, name, True)
    size = self._group_size('apply_gradients')
    if not cross_replica.in_replicas():
      return super().apply_gradients(
          self._reduce(grads_and_vars), global_step, name)
    tower = tower_run.current_tower()
    if tower is not None and not tower.gradients_are_summed:
      return super().apply_gradients(
          self._sum_over_towers(tower, grads_and_vars), global_step, name)
    if size < cross_replica.num_shards():
      return self._apply_per_group(grads_and_vars, global_step, name)
    if tower is not None:
      # The towers are one computation: each has the gradient of the batch.
      return super().apply_gradients(grads_and_vars, global_step, name)
    if _assigns_by_itself(self._optimizer):
      return self._apply_once(grads_and_vars, global_step, name)
    # The wrapped optimizer sums over the replicas.
    return super().apply_gradients(grads_and_vars, global_step, name)

  def _group_size(self, caller: str) -> int:
    """The size of this shard's group; checks the context."""
    count = cross_replica.num_shards(
        f'CrossShardOptimizer.{caller}')
    if (count == 1 and not self._has_warned and
        not tf.distribute.has_strategy() and
        _tf_internals.number_of_tpu_shards() is None):
      self._has_warned = True
      logging.warning(
          'CrossShardOptimizer runs on one shard: there is no '
          'tpu_shard_context and no tf.distribute strategy around it.')
    return groups_lib.group_size(self._group_assignment, count)

  def _scale(self, loss: tf.Tensor) -> tf.Tensor:
    """`loss` such that the sum of its gradients over a group is the reduction.

    What TensorFlow is going to divide by is multiplied in.
    """
    tower = tower_run.current_tower()
    if tower is not None and tower.gradients_are_summed:
      return loss
    size = self._group_size('compute_gradients')
    divisor = size if self._reduction == shard_reduction.MEAN else 1
    factor = 1
    if cross_replica.in_replicas() and _tf_internals.strategy_divides_loss():
      factor = tf.distribute.get_strategy().num_replicas_in_sync
    return loss if factor == divisor else loss * (factor / divisor)

  def _reduce(self, grads_and_vars: types.GradsAndVars) -> list:
    """Sums each gradient over this shard's group."""
    return [(g if g is None else cross_replica.cross_replica_sum(
        g, self._group_assignment), v) for g, v in grads_and_vars]

  def _sum_over_towers(self, tower: tower_run.TowerContext,
                       grads_and_vars: types.GradsAndVars) -> list:
    """Sums over the towers of tower 0's group, whose variables all share."""
    groups = self._group_assignment or [list(range(tower.num_towers))]
    group = next(group for group in groups if 0 in group)
    return [(g if g is None else tower.sum_gradient(v, g, group), v)
            for g, v in grads_and_vars]

  def _apply_per_group(self, grads_and_vars, global_step, name):
    """Applies to each replica's copy what its group's gradients sum up to."""
    if isinstance(self._optimizer, wrapper.OptimizerWrapper):
      return self._optimizer.apply_gradients(
          self._reduce(grads_and_vars), global_step, name,
          skip_gradients_aggregation=True)
    if type(self._optimizer).apply_gradients is not (
        tf1.train.Optimizer.apply_gradients):
      raise NotImplementedError(
          '`group_assignment` with several groups needs an optimizer that does '
          'not override `apply_gradients`. Received: '
          f'{type(self._optimizer).__name__}. Override `_apply_dense` and '
          '`_resource_apply_dense` instead, or use one group.')
    return reduced_gradients.apply_reduced_gradients(
        self._optimizer, self._reduce(grads_and_vars), global_step, name)

  def _apply_once(self, grads_and_vars, global_step, name):
    """Reduces, then lets the wrapped optimizer assign to all copies at once."""

    def apply(strategy, pairs):
      reduced = strategy.extended.batch_reduce_to(
          tf.distribute.ReduceOp.SUM, pairs)
      gradients = [strategy.experimental_local_results(g)[0] for g in reduced]
      return self._optimizer.apply_gradients(
          list(zip(gradients, [v for _, v in pairs])),
          global_step=global_step, name=name)

    pairs = [(g, v) for g, v in grads_and_vars if g is not None]
    return tf.distribute.get_replica_context().merge_call(apply, args=(pairs,))


def _assigns_by_itself(optimizer: tf1.train.Optimizer) -> bool:
  """Whether `apply_gradients` of a user's class is all there is to it."""
  base = tf1.train.Optimizer
  kind = type(optimizer)
  return (not isinstance(optimizer, wrapper.OptimizerWrapper) and
          kind.apply_gradients is not base.apply_gradients and
          not _tf_internals.implements_updates(optimizer))
