# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper that reduces gradients over shards before they are applied."""

from __future__ import annotations

import contextlib
import functools
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import optimizer_interception
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.shards import shards_here
from tfplugin.distribute.shards import sums_for_wrappers
from tfplugin.ops import shard_reduction
from tfplugin.optimizers import reduced_gradients
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class CrossShardOptimizer(wrapper.OptimizerWrapper,
                          tf1.tpu.CrossShardOptimizer):
  """Wrapper that sums or averages the shards' gradients as it applies them.

  For synchronous training on shards of a batch. A shard is a core of a TPU, a
  replica of a `tf.distribute` strategy, a shard of `cross_shard` or
  `ShardedTPUEstimator`, or a process of a `horovodrun`. The rule, for a group
  of n shards with losses loss[1] .. loss[n]:

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

  # As on TPU. The subclass of the decorator leaves sums over the shards as they
  # are.
  _sums_totals = True

  def __init__(self,
               opt: types.Optimizer,
               reduction: str = shard_reduction.MEAN,
               name: str = 'CrossShardOptimizer',
               group_assignment: groups_lib.GroupAssignment = None):
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
    groups_lib.check(group_assignment)
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
    with _tf_internals.losses_as_they_are():
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
      return super().apply_gradients(grads_and_vars, global_step, name, True)
    shards = self._shards('apply_gradients')
    call = _Application(
        self._optimizer, super().apply_gradients, global_step, name,
        self._sums_totals)
    return shards.apply(call, grads_and_vars, self._group_assignment)

  def _shards(self, caller: str) -> shards_here.Shards:
    """Returns the shards of a call; checks the groups, warns if it is one."""
    shards = shards_here.shards_here(f'CrossShardOptimizer.{caller}')
    if (isinstance(shards, shards_here.OneShard) and
        not self._has_warned and not tf.distribute.has_strategy()):
      self._has_warned = True
      tf1.logging.warning(
          'CrossShardOptimizer runs on one shard: there is no TPU, no '
          'tf.distribute strategy around it, and no Horovod with several '
          'processes. Use it under `tfplugin.estimator.cross_shard`, '
          '`tfplugin.distribute.CrossShardStrategy` or '
          '`tfplugin.estimator.ShardedTPUEstimator`.')
    groups_lib.check(self._group_assignment, shards.size)
    return shards


class _Application:
  """One call of the wrapped optimizer, in the forms that shards need.

  `sums_totals` is whether a gradient is summed that is a sum over the shards
  already, as on TPU.
  """

  def __init__(self, optimizer: tf1.train.Optimizer, apply_gradients: Callable,
               global_step: tf.Variable | None, name: str | None,
               sums_totals: bool):
    self.sums_totals = sums_totals
    self._optimizer = optimizer
    self._apply_gradients = apply_gradients
    self._global_step = global_step
    self._name = name

  def apply(self, grads_and_vars: types.GradsAndVars):
    """Applies the gradients with the wrapped optimizer."""
    return self._apply_gradients(
        grads_and_vars, self._global_step, self._name)

  @property
  def takes_sums(self) -> bool:
    """Whether a wrapper of the program is given the sums, as on TPU."""
    return sums_for_wrappers.takes_sums(self._optimizer)

  def apply_sums(self, grads_and_vars: types.GradsAndVars,
                 summing: contextlib.AbstractContextManager | None):
    """Applies the sums of the gradients over all replicas by the wrapper.

    A strategy that knows sums, and does not sum them again outside of
    `summing`, has that context. Other optimizers inside the wrapper are
    intercepted.
    """
    if tf.executing_eagerly():
      sums_for_wrappers.refuse_eager(
          self._optimizer, 'inside `CrossShardOptimizer`')
    if summing is not None:
      return sums_for_wrappers.OfSums(self._optimizer, summing).apply_gradients(
          grads_and_vars, global_step=self._global_step, name=self._name)
    sums = sums_for_wrappers.sums_of(grads_and_vars, contextlib.nullcontext())
    with optimizer_interception.Interception(
        reduced_gradients.PerCopy, reduced_gradients.PerCopy,
        only=reduced_gradients.is_applied_per_copy).active():
      return self._optimizer.apply_gradients(
          sums, global_step=self._global_step, name=self._name)

  def apply_once(self, grads_and_vars: types.GradsAndVars):
    """Applies the sums of the gradients over all replicas."""
    if (reduced_gradients.is_applied_per_copy(self._optimizer) or
        _tf_internals.implements_updates(self._optimizer)):
      # It sums over the replicas.
      return self.apply(grads_and_vars)

    def apply(strategy, pairs):
      reduced = strategy.extended.batch_reduce_to(
          tf.distribute.ReduceOp.SUM, pairs)
      gradients = [strategy.experimental_local_results(g)[0] for g in reduced]
      return self._optimizer.apply_gradients(
          list(zip(gradients, [v for _, v in pairs])),
          global_step=self._global_step, name=self._name)

    pairs = [(g, v) for g, v in grads_and_vars if g is not None]
    return tf.distribute.get_replica_context().merge_call(apply, args=(pairs,))

  def per_copy(self) -> Callable:
    """Returns a function that applies summed gradients to a replica's copy.

    Raises NotImplementedError if the wrapped optimizer would sum them again.
    """
    if not reduced_gradients.is_applied_per_copy(self._optimizer):
      raise NotImplementedError(
          '`group_assignment` with several groups needs an optimizer that does '
          'not override `apply_gradients`. Received: '
          f'{type(self._optimizer).__name__}. Override `_apply_dense` and '
          '`_resource_apply_dense` instead, or use one group.')
    return functools.partial(
        reduced_gradients.PerCopy(self._optimizer).apply_gradients,
        global_step=self._global_step, name=self._name)
