# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper that reduces gradients over shards before they are applied."""

from __future__ import annotations

import contextlib
import functools
from types import SimpleNamespace

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute.shards import current_shards
from tfplugin.distribute.shards import shard_loss
from tfplugin.distribute.shards import sums_for_wrappers
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.ops import shard_reduction
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class CrossShardOptimizer(wrapper.OptimizerWrapper,
                          tf1.tpu.CrossShardOptimizer):
  """Wrapper that sums or averages the shards' gradients as it applies them.

  For synchronous training on shards of a batch. Shards are the cores of a TPU,
  the replicas of a `tf.distribute` strategy, the shards of `cross_shard` or
  `ShardedTPUEstimator`, or the processes of a `horovodrun`. The rule, for a
  group of n shards with losses loss[1] .. loss[n]:

    compute_gradients:  gradient[i] = d loss[i] / d variable * scale
    apply_gradients:    gradient = sum over i of gradient[i]
    scale = 1 / n with MEAN, 1 with SUM

  The scaling belongs to `compute_gradients`: gradients of `tf.gradients` that
  go to `apply_gradients` are summed, not scaled. Under an Estimator a strategy
  divides the loss by the number of replicas itself; the wrapper accounts for
  that division. `reduction` means the same everywhere.

  Towers are not shards: the towers of `replicate_model_fn` are one computation,
  whose gradients already belong to the whole batch. They are not scaled or
  summed again. The shards of `ShardedTPUEstimator` share their variables. With
  groups these follow the group of shard 0, as the checkpoint of a TPU does.

  In a `horovodrun`, after `hvd.init()`, each process is a shard and Horovod's
  all-reduce sums. The program makes the variables start equal, with
  `hvd.BroadcastGlobalVariablesHook(0)`.

  With one shard the gradients go to the wrapped optimizer unchanged. Outside of
  every sharding context a warning is logged, once per optimizer.

  Supported: graph, eager execution with a callable loss, tf.function; dense and
  sparse gradients (rows are gathered, not made dense); partitioned variables;
  strategies with a copy of the variables per replica, and, without groups,
  strategies that share them. A wrapped optimizer that replaces
  `apply_gradients` altogether and assigns by itself is called once with the
  reduced gradients. A wrapper of the program, such as LARS, gets the sums, in a
  graph or a tf.function. The TPU path has been checked as a graph; it was
  built, not run.

  Differences from tf.contrib:
    * Works off TPU, where `tf.compat.v1.tpu.CrossShardOptimizer` fails with
      "No OpKernel was registered to support Op 'CrossReplicaSum'".
    * One shard adds no op; the original adds a CrossReplicaSum.
    * Sparse gradients stay sparse; the original makes them dense.
    * A bad `group_assignment` is refused at construction, as far as it can be
      checked there.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> strategy = tf.distribute.MirroredStrategy(
    ...     ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())
    >>> with strategy.scope():
    ...   weight = tf.Variable(1.0)
    >>> optimizer = tfplugin.CrossShardOptimizer(
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
    `tf.compat.v1.tpu.CrossShardOptimizer`, the base class.
  """

  def __init__(self,
               opt: types.Optimizer,
               reduction: str = shard_reduction.MEAN,
               name: str = 'CrossShardOptimizer',
               group_assignment: shard_reduction.GroupAssignment = None):
    """Wraps `opt`.

    Args:
      opt: The v1 optimizer that applies the reduced gradients.
      reduction: `tf.compat.v1.losses.Reduction.MEAN` or `SUM`, over the shards
        of a group. MEAN suits the usual loss, a mean over the shard's part of
        the batch.
      name: Names ops, never a variable.
      group_assignment: List of lists of shard indices that reduce together; all
        groups of one size. None reduces over all shards.

    Raises:
      TypeError: `opt` is not an instance of a v1 optimizer.
      ValueError: `reduction` is neither, or `group_assignment` does not divide
        the shards into equal groups.
    """
    shard_reduction.check(reduction)
    shard_reduction.check_groups(group_assignment)
    super().__init__(opt, False, name)
    # The attributes have their names in `tf.compat.v1.tpu.CrossShardOptimizer`.
    self._opt = opt
    self._reduction = reduction
    self._group_assignment = group_assignment
    self._has_warned = False

  def compute_gradients(self, loss: types.LossLike, *args,
                        **kwargs) -> types.GradsAndVars:
    """Computes this shard's gradients; with MEAN, its share of the mean.

    Args:
      loss: This shard's loss: a tensor, or a callable that returns it.
      *args: See base class.
      **kwargs: See base class.

    Returns:
      Pairs of a gradient (or None) and a variable. A clip of them by norm acts
      on one shard, before the sum.

    Raises:
      ValueError: `group_assignment` does not fit the number of shards.
      RuntimeError: Called in the cross-replica context of a strategy.
    """
    shards = self._shards('compute_gradients')

    def scaled(loss: tf.Tensor) -> tf.Tensor:
      factor = shards.loss_factor(self._reduction, self._group_assignment)
      return loss if factor == 1 else loss * factor

    # The factor of a callable's loss is known when the loss has been built.
    with shard_loss.losses_as_they_are():
      return super().compute_gradients(
          (lambda: scaled(loss())) if callable(loss) else scaled(loss),
          *args, **kwargs)

  def apply_gradients(self,
                      grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None,
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
      return self._apply_wrapped(grads_and_vars, global_step, name, True)
    shards = self._shards('apply_gradients')
    if type(shards) is current_shards.Replicas:
      return self._apply_in_replicas(
          shards, grads_and_vars, global_step=global_step, name=name)
    with shards.applying_sums():
      return self._apply_wrapped(
          shards.sums(grads_and_vars, self._group_assignment),
          global_step, name)

  def _apply_in_replicas(self, shards: current_shards.Shards,
                         grads_and_vars: types.GradsAndVars, **arguments):
    """Applies the sums of the gradients over the replicas of a strategy."""
    opt, groups = self._optimizer, self._group_assignment
    if shard_reduction.group_size(groups, shards.size) < shards.size:
      _check_applied_per_copy(opt)
      return PerCopy(opt).apply_gradients(
          shards.sums(grads_and_vars, groups), **arguments)
    if sums_for_wrappers.takes_sums(opt):
      return _apply_to_wrapper(opt, grads_and_vars, **arguments)
    summing = getattr(tf.distribute.get_strategy().extended, 'summing_totals',
                      contextlib.nullcontext())
    if is_applied_per_copy(opt) or _tf_internals.implements_updates(opt):
      with summing:  # It sums over the replicas.
        return self._apply_wrapped(grads_and_vars, **arguments)
    return _apply_once(opt, sums_for_wrappers.sums_of(
        grads_and_vars, summing), **arguments)

  def _shards(self, caller: str) -> current_shards.Shards:
    """Returns the shards of a call; checks the groups, warns if it is one."""
    shards = current_shards.current_shards(f'CrossShardOptimizer.{caller}')
    if (type(shards) is current_shards.Shards and
        not self._has_warned and not tf.distribute.has_strategy()):
      self._has_warned = True
      tf1.logging.warning(
          'CrossShardOptimizer runs on one shard: there is no TPU, no '
          'tf.distribute strategy around it, and no Horovod with several '
          'processes. Use it under `tfplugin.estimator.cross_shard`, '
          '`tfplugin.distribute.CrossShardStrategy` or '
          '`tfplugin.estimator.ShardedTPUEstimator`.')
    shard_reduction.check_groups(self._group_assignment, shards.size)
    return shards


def _apply_to_wrapper(optimizer: tf1.train.Optimizer,
                      grads_and_vars: types.GradsAndVars, **arguments):
  """Applies the sums over all replicas by a wrapper of the program, as on TPU.

  Other optimizers inside the wrapper are intercepted.
  """
  if tf.executing_eagerly():
    sums_for_wrappers.refuse_eager(optimizer, 'inside `CrossShardOptimizer`')
  extended = tf.distribute.get_strategy().extended
  # A strategy that knows sums, and does not sum them again outside of it.
  summing = getattr(extended, 'summing_totals', None)
  if summing is not None:
    return sums_for_wrappers.OfSums(optimizer, summing).apply_gradients(
        grads_and_vars, **arguments)
  sums = sums_for_wrappers.sums_of(grads_and_vars, contextlib.nullcontext())
  with optimizer_interception.Interception(
      PerCopy, PerCopy, only=is_applied_per_copy).active():
    return optimizer.apply_gradients(sums, **arguments)


def _apply_once(optimizer: tf1.train.Optimizer, sums: types.GradsAndVars,
                **arguments):
  """Applies the sums over all replicas by an optimizer that assigns itself."""

  def merged(strategy, pairs):
    return optimizer.apply_gradients([
        (strategy.experimental_local_results(total)[0], variable)
        for total, variable in pairs], **arguments)

  pairs = [(total, v) for total, v in sums if total is not None]
  return tf.distribute.get_replica_context().merge_call(merged, args=(pairs,))


def is_applied_per_copy(optimizer: tf1.train.Optimizer) -> bool:
  """Returns whether TensorFlow or tfplugin applies it, and sums gradients."""
  return isinstance(optimizer, wrapper.OptimizerWrapper) or (
      type(optimizer).apply_gradients is tf1.train.Optimizer.apply_gradients)


def _check_applied_per_copy(optimizer: tf1.train.Optimizer) -> None:
  """Raises NotImplementedError if `optimizer` would sum sums again."""
  if not is_applied_per_copy(optimizer):
    raise NotImplementedError(
        '`group_assignment` with several groups needs an optimizer that does '
        'not override `apply_gradients`. Received: '
        f'{type(optimizer).__name__}. Override `_apply_dense` and '
        '`_resource_apply_dense` instead, or use one group.')


class PerCopy:
  """Optimizer that applies each replica's gradients to that replica's copies.

  It takes optimizers that `is_applied_per_copy` accepts.
  """

  def __init__(self, optimizer: tf1.train.Optimizer):
    """Wraps `optimizer`, which would sum the gradients over the replicas."""
    self.apply_gradients = (
        functools.partial(
            optimizer.apply_gradients, skip_gradients_aggregation=True)
        if isinstance(optimizer, wrapper.OptimizerWrapper) else
        functools.partial(apply_reduced_gradients, optimizer))


def apply_reduced_gradients(
    optimizer: tf1.train.Optimizer,
    grads_and_vars: types.GradsAndVars,
    global_step: tf.Variable | None = None,
    name: str | None = None,
):
  """Applies each replica's gradients to that replica's copy of the variables.

  A v1 optimizer in a replica context always reduces its gradients. Here a
  stand-in for the strategy reduces nothing, and keeps the rest of the
  optimizer's work: slots, one update per copy of a variable, the global step.
  `optimizer` is applied in TensorFlow's own way, and no wrapper.
  """
  pairs = [(g, v) for g, v in grads_and_vars if g is not None]
  if not pairs:
    raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                     'provided for any variable. Received: '
                     f'{list(grads_and_vars)!r}')

  def apply_to_copies(strategy, pairs):
    for _, variable in pairs:
      _check_copies(strategy, variable)
    extended = strategy.extended
    reduced = SimpleNamespace(group=strategy.group, extended=SimpleNamespace(
        batch_reduce_to=lambda reduce_op, pairs: [value for value, _ in pairs],
        update=extended.update, update_non_slot=extended.update_non_slot,
        non_slot_devices=extended.non_slot_devices))
    return _tf_internals.distributed_apply(
        optimizer, reduced, pairs, global_step, name)

  return tf.distribute.get_replica_context().merge_call(
      merge_calls.labelled(
          f'{optimizer.get_name()}.apply_gradients', apply_to_copies),
      args=(pairs,))


def _check_copies(strategy: tf.distribute.Strategy, variable) -> None:
  """Raises ValueError if `variable` has one copy for all replicas."""
  if len(strategy.experimental_local_results(variable)) == 1:
    raise ValueError(
        '`group_assignment` with several groups, and a wrapper of the program, '
        'need a copy of every variable per replica. Received: '
        f'{variable.name}, which {type(strategy).__name__} keeps once for all '
        'replicas. Use `tf.distribute.MirroredStrategy`, or one group.')
