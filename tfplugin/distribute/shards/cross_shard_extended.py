# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reductions of CrossShardStrategy: packed, and by group."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import refusals
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import shard_loss
from tfplugin.distribute.shards import sums_for_wrappers
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import shard_writes
from tfplugin.distribute.shards.writes import write_audit
from tfplugin.distribute.updates import intercepted_updates
from tfplugin.distribute.variables import mirrored_variables
from tfplugin.distribute.variables import same_values
from tfplugin.ops import batch_parts
from tfplugin.ops import shard_reduction

tf1 = tf.compat.v1

_SUM = tf.distribute.ReduceOp.SUM
_DROPS_LAST = (
    'An evaluation on %d devices ends when one of them gets no batch, and '
    'TensorFlow drops the batches of the others in this step. Make the number '
    'of batches a multiple of the devices, or leave out `eval_distribute`.')


class GroupReduction:
  """Mixin that reduces gradients over groups, other values over all replicas.

  It goes before one of TensorFlow's extended classes, and before
  `InterceptedUpdates` where variables have copies. A v1 optimizer reduces
  gradients to variables, `all_reduce` reduces values to devices.
  """

  _alone = None  # Shards synchronize in branches if they make the same calls.
  _run = None  # The shards that are being built in a graph.
  _starts_copies = None
  _has_warned = False

  def __init__(self, *args: Any, **kwargs: Any):
    # Gradients that are applied inside are summed again if they are sums.
    self.summing_totals = per_graph.Inside()
    # Gradients that are applied inside are sums over shards.
    self.applying_sums = per_graph.Inside()
    self._made = weakref.WeakValueDictionary()
    super().__init__(*args, **kwargs)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    if reduce_op != _SUM or not all(
        _tf_internals.is_distributed_variable(destination)
        for _, destination in value_destination_pairs):
      return self._reduce_over_all(
          reduce_op, value_destination_pairs, options)
    totals = [self._are_totals(value) for value, _ in value_destination_pairs]
    parts = [pair for pair, is_total in zip(value_destination_pairs, totals)
             if not is_total]
    if self._run is not None:
      for value, _ in parts:
        self._run.warn_of_own_change(self._local_results(value)[0])
    reduced = iter(self._reduce_gradients(parts, options) if parts else ())
    return [value if is_total else next(reduced)
            for (value, _), is_total in zip(value_destination_pairs, totals)]

  def _are_totals(self, value: Any) -> bool:
    """Returns whether the replicas have summed a gradient over all shards.

    Inside `applying_sums` a value that a wrapper has accumulated is a sum, too.
    """
    if self._run is None or self.summing_totals:
      return False
    groups, noted = (
        self._container_strategy().group_assignment, self._run.gradients)
    if self.applying_sums and groups is not None and len(groups) > 1:
      return True
    return all(
        noted.are_in_total(part) or self.applying_sums and not noted.made(part)
        for part in self._local_results(value))

  def _reduce_gradients(self, value_destination_pairs, options):
    """Reduces gradients over their groups."""
    groups = self._container_strategy().group_assignment
    if groups is None or len(groups) == 1:
      return self._sum_over_all(value_destination_pairs, options)
    values = [self._local_results(v) for v, _ in value_destination_pairs]
    own_groups = self._own_groups(groups)
    totals = self._sum_over_all([
        (self._per_device(lambda x, group: all_reduce.put_in_group(
            x, group, len(groups)), each, own_groups), destination)
        for each, (_, destination) in zip(values, value_destination_pairs)],
                                options)

    def pick_sum(total, x, group):
      return all_reduce.take_from_group(total, x, group, len(groups))

    return [
        self._per_device(pick_sum, self._local_results(total), each, own_groups)
        for total, each in zip(totals, values)]

  def _per_device(self, fn: Callable, *lists: Sequence) -> Any:
    """Returns `fn` of the items of each device, made on that device."""
    results = []
    for device, *each in zip(self.worker_devices, *lists):
      with tf.device(device):
        results.append(fn(*each))
    return _tf_internals.regroup(tuple(results))

  def _sum_over_all(self, value_destination_pairs, options):
    """Sums gradients over all replicas."""
    return self._reduce_over_all(_SUM, value_destination_pairs, options)

  def _reduce_over_all(self, reduce_op, value_destination_pairs, options):
    """Reduces over all replicas, by TensorFlow."""
    return super()._batch_reduce_to(reduce_op, value_destination_pairs, options)

  def _update(self, var, fn, args, kwargs, group):
    groups = self._container_strategy().group_assignment
    if groups is not None and len(groups) > 1:
      refusals.refuse_keras_update(
          fn, 'a Keras optimizer sums over all shards, not over the groups of '
          '`group_assignment`', ', or leave out the groups')
    return super()._update(var, fn, args, kwargs, group)

  def _validate_colocate_with_variable(self, colocate_with_variable):
    if isinstance(colocate_with_variable, tf.Operation):
      # SyncReplicasOptimizer colocates the step of a worker like this.
      refusals.refuse_synchronous(
          'in shards', 'each would fill queues of its own',
          f'a variable beside {colocate_with_variable.name}',
          'Leave it out: the gradients of all shards are summed within the '
          'step')
    super()._validate_colocate_with_variable(colocate_with_variable)

  def _create_variable(self, next_creator, **kwargs):
    variable = super()._create_variable(next_creator, **kwargs)
    if isinstance(variable, _tf_internals.MirroredVariable):
      self._check_copies_of(variable)
    self._made[id(variable)] = variable
    return variable

  def _check_copies_of(self, variable: tf.Variable) -> None:
    """Notes the copies of a new variable, which must stay the same."""
    copies = same_values.Copies([copy.handle for copy in variable.values])
    if variable.aggregation in (None, tf.VariableAggregation.NONE):
      self._write_batch_values(variable, copies)

  def _write_batch_values(self, variable: tf.Variable,
                          copies: same_values.Copies | None = None) -> None:
    """Makes writes of shards to a new variable writes of the batch value."""
    _tf_internals.mix_in(
        variable, shard_writes.BatchWrites, tfplugin_copies=copies,
        # Statistics of Keras 3 are means over the replicas, as in Keras 2.
        tfplugin_is_mean=variable.dtype.is_floating and (
            _tf_internals.is_asked_by_keras_3()))

  def _call_for_each_replica(self, fn, args, kwargs):
    with _tf_internals.losses_scaled(shard_loss.scaled):
      if tf.executing_eagerly():
        return super()._call_for_each_replica(fn, args, kwargs)
      outer, self._run = self._run, self._new_run(args, kwargs)
      try:
        return self._build(fn, args, kwargs)
      except RuntimeError as error:
        if _tf_internals.is_disagreement(error):
          raise self._run.disagreement() from error
        raise
      finally:
        self._run = outer

  def _intercepting(self, fn):
    """Returns `fn`, whose wrappers get the sums over the shards."""

    def intercepted(*args, **kwargs):
      with sums_for_wrappers.Summing().active():
        return fn(*args, **kwargs)

    return super()._intercepting(intercepted)

  def _new_run(self, args, kwargs) -> shard_run.ShardRun:
    """Returns a run of shards; an inner one has no known batch."""
    count = len(self.worker_devices)
    if self._run is not None:
      return shard_run.ShardRun([()] * count, self._run.gradients)
    return shard_run.ShardRun([
        _tf_internals.select_replica(replica, (args, kwargs))
        for replica in range(count)])

  def _build(self, fn, args, kwargs):
    """Builds `fn` in each shard, and checks its writes."""
    run, result = self._run, self._in_shards(self._reporting(fn), args, kwargs)
    self._check_writes(run)
    if getattr(result, 'mode', None) == 'eval':  # Of Estimator.
      self._merge_metrics(result.eval_metric_ops)
    if run.losses:
      self._report_batch(run, result.loss)
    if self._starts_copies is True:
      self._starts_copies = self._start_of_copies()
    return result

  def _merge_metrics(self, metrics: dict) -> None:
    """Gives one value to each of the metrics of all replicas."""
    if not self._has_warned and len(self.worker_devices) > 1:
      self._has_warned = True
      tf1.logging.warning(_DROPS_LAST, len(self.worker_devices))
    write_audit.merge_metrics(metrics, self._local_results)

  def _in_shards(self, fn, args, kwargs):
    """Builds `fn` in each shard."""
    run = self._run
    is_in_replica, taken = _tf_internals.is_in_replica, run.gradients.taken
    with _tf_internals.gradients_noted(is_in_replica, taken.append), (
        _tf_internals.summaries_of_all(is_in_replica)), (
            _tf_internals.sizes_as_ops(run.has_rows)), (
                _tf_internals.models_by_replica(run.models is None)):
      result = super()._call_for_each_replica(run.around(fn), args, kwargs)
    run.branches.check_conditions()
    _tf_internals.gradients_of_graph_through(
        tf1.get_default_graph(), self._gradients_of_copies)
    return result

  def _gradients_of_copies(self, helper: Callable, **arguments: Any) -> list:
    """Returns gradients outside of shards, as in a hook, summed over copies."""
    if shard_run.current() is not None:
      return helper(**arguments)
    copies = [self._local_results(x) for x in tf.nest.flatten(arguments['xs'])]
    arguments['xs'] = [copy for own in copies for copy in own]
    found = iter(helper(**arguments))
    gradients = [[next(found) for _ in own] for own in copies]
    return [batch_parts.weighted_sum(own, [1.0] * len(own)) if own else None
            for own in ([g for g in each if g is not None]
                        for each in gradients)]

  def check_branch(self, label: str) -> None:
    """Raises NotImplementedError for a call of groups in a branch."""
    groups = self._container_strategy().group_assignment
    if groups is not None and len(groups) > 1:
      raise NotImplementedError(
          '`group_assignment` with several groups cannot be used with an '
          f'update inside of `tf.cond`. Received: {groups!r} and {label} in '
          'a branch. Use one group, or make the update in every step.')

  def _reporting(self, fn: Callable) -> Callable:
    """Returns `fn` with the replica's part of the loss that Estimator sums."""
    strategy, fn = self._container_strategy(), (
        _tf_internals.converted_as_here(fn))

    @functools.wraps(fn)
    @tf.autograph.experimental.do_not_convert
    def reporting(*args, **kwargs):
      spec = fn(*args, **kwargs)
      if getattr(spec, 'train_op', None) is None:
        return spec
      shard_run.current().losses.append(spec.loss)
      share = strategy.reduced_together / strategy.num_replicas_in_sync
      loss = strategy.part_of_loss(write_audit.unnamed(spec.loss)) * share
      return spec._replace(
          loss=loss, scaffold=self.init_all(spec.scaffold))

    return reporting

  def _report_batch(self, run: shard_run.ShardRun, loss: Any) -> None:
    """Makes named numbers and summaries those of all shards.

    Several processes do not fetch such numbers together: they keep the numbers
    of the first shard.
    """
    parts = self._local_results(loss)
    if len(parts) == self._num_replicas_in_sync > 1:
      write_audit.show_batch_values(run, range(len(parts)), run.losses[0])
      with tf.name_scope('loss_of_batch'):
        total = tf.add_n(parts)
      made = graph_order.upstream([total.op])
      readers = [ops - made for ops in write_audit.readers_of(run.losses)]
      write_audit.show_loss(run.losses, readers, total)

  def _start_of_copies(self) -> tf.Operation:
    """Returns the op that starts all copies with the value of the first."""
    copies = [variable.values for variable in self._made.values() if isinstance(
        variable, _tf_internals.MirroredVariable)]
    with tf.name_scope('start_of_copies'):
      return tf.group(*[copy.assign(first.read_value(), read_value=False)
                        for first, *others in copies for copy in others])

  def init_all(self, scaffold: tf1.train.Scaffold | None) -> Any:
    """Returns a scaffold whose `init_fn` starts the copies of all replicas.

    Estimator runs only the first replica's `init_fn`, which starts only the
    first copies. `scaffold` is a replica's, or None.
    """
    init_fn = _tf_internals.user_init_fn(scaffold)
    if init_fn is None:
      return scaffold
    self._starts_copies = True

    def init(scaffold, session):
      init_fn(scaffold, session)
      session.run(self._starts_copies)

    return _tf_internals.changed_scaffold(scaffold, init_fn=init)

  def _check_writes(self, run: shard_run.ShardRun) -> None:
    """Raises if replicas wrote different values, unless by merge calls."""
    if not self._use_merge_call():
      return
    made = list(self._made.values())
    run.record.check_no_stores()
    write_audit.check_copies(run, (variable for variable in made if isinstance(
        variable, _tf_internals.MirroredVariable)))
    if not tf.inside_function():
      count = len(self.worker_devices)
      write_audit.settle(
          run, range(count), others=[
              copy.handle for variable in made
              for copy in getattr(variable, 'values', [variable])],
          is_alone=count == self._num_replicas_in_sync and len(
              self._container_strategy().group_assignment or [0]) == 1)

  def _own_groups(self, groups: list[list[int]]) -> list[int]:
    """Returns the groups of this process's replicas."""
    first = _tf_internals.index_in_cluster(self) * len(self.worker_devices)
    return shard_reduction.group_of_shard(groups)[
        first:first + len(self.worker_devices)]


class LocalExtended(GroupReduction, mirrored_variables.MirroredInGraph,
                    intercepted_updates.InterceptedUpdates,
                    untuned_inputs.UntunedInputs,
                    _tf_internals.MirroredExtended):
  """The devices of one host."""

  def __init__(self, strategy: tf.distribute.Strategy,
               devices: Sequence[str]):
    super().__init__(strategy, devices=list(devices),
                     cross_device_ops=all_reduce.PackedReduction())
