# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reductions of CrossShardStrategy: packed, and by group."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.shards import horovod_reduction
from tfplugin.distribute.shards import packed_reduction
from tfplugin.distribute.shards import shard_writes
from tfplugin.distribute.shards import write_audit
from tfplugin.distribute.updates import met_updates
from tfplugin.distribute.variables import branch_calls
from tfplugin.distribute.variables import mirrored_variables

tf1 = tf.compat.v1

_SUM = tf.distribute.ReduceOp.SUM

# Small gradients are sent together, in several packs: one is sent while the
# next one is being made.
_BYTES_PER_PACK = 2 << 20


class GroupReduction(met_updates.MetUpdates):
  """Mixin that reduces gradients over groups, other values over all replicas.

  It goes before one of TensorFlow's extended classes. A v1 optimizer reduces
  gradients to variables, `all_reduce` reduces values to devices.
  """

  _alone = None  # Shards synchronize in branches if they make the same calls.
  _made = None
  _starts_copies = None

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    groups = self._container_strategy().group_assignment
    if groups is None or len(groups) == 1 or reduce_op != _SUM or not all(
        _tf_internals.is_distributed_variable(destination)
        for _, destination in value_destination_pairs):
      return self._reduce_over_all(
          reduce_op, value_destination_pairs, options)
    values = [self._local_results(v) for v, _ in value_destination_pairs]
    own_groups = self._own_groups(groups)

    def per_replica(fn, *lists):
      results = []
      for index, group in enumerate(own_groups):
        with tf.device(self.worker_devices[index]):
          results.append(fn(*(each[index] for each in lists), group))
      return _tf_internals.regroup(tuple(results))

    apart = [per_replica(lambda x, group: all_reduce.put_in_group(
        x, group, len(groups)), each) for each in values]
    totals = self._reduce_over_all(reduce_op, [
        (value, destination) for value, (_, destination)
        in zip(apart, value_destination_pairs)], options)

    def take(total, x, group):
      return all_reduce.take_from_group(total, x, group, len(groups))

    return [per_replica(take, self._local_results(total), each)
            for total, each in zip(totals, values)]

  def _reduce_over_all(self, reduce_op, value_destination_pairs, options):
    """Reduces over all replicas, by TensorFlow."""
    return super()._batch_reduce_to(reduce_op, value_destination_pairs, options)

  def _update(self, var, fn, args, kwargs, group):
    groups = self._container_strategy().group_assignment
    if groups is not None and len(groups) > 1:
      parameter_server_base.refuse_keras_update(
          fn, 'a Keras optimizer sums over all shards, not over the groups of '
          '`group_assignment`', ', or leave out the groups')
    return super()._update(var, fn, args, kwargs, group)

  def _validate_colocate_with_variable(self, colocate_with_variable):
    if isinstance(colocate_with_variable, tf.Operation):
      # SyncReplicasOptimizer colocates the step of a worker like this.
      raise RuntimeError(
          '`tf.compat.v1.train.SyncReplicasOptimizer` must not be used under '
          'CrossShardStrategy: each shard would fill queues of its own. '
          f'Received: a variable beside {colocate_with_variable.name}. Leave '
          'it out: the gradients of all shards are summed within the step.')
    super()._validate_colocate_with_variable(colocate_with_variable)

  def _create_variable(self, next_creator, **kwargs):
    variable = super()._create_variable(next_creator, **kwargs)
    shard_writes.add_up(variable)
    if self._made is None:
      self._made = {}
    self._made[id(variable)] = weakref.ref(variable)
    return variable

  def _call_for_each_replica(self, fn, args, kwargs):
    strategy = self._container_strategy()
    with strategy.scaling_losses():
      if tf.executing_eagerly():
        return super()._call_for_each_replica(fn, args, kwargs)
      branches, writes = branch_calls.Branches(), self._writes(args, kwargs)
      with _tf_internals.gradients_noted(
          _is_in_replica, writes.gradients.add):
        result = super()._call_for_each_replica(
            shard_writes.in_branches(
                _reporting(fn, strategy), branches, writes), args, kwargs)
      branches.check_conditions()
      self._audit_writes(writes.audit)
      if self._starts_copies is True:
        self._starts_copies = self._start_of_copies()
      return result

  def _start_of_copies(self) -> tf.Operation:
    """Returns the op that starts all copies with the value of the first."""
    copies = [variable.values for variable in self._variables() if isinstance(
        variable, _tf_internals.MirroredVariable)]
    with tf.name_scope('start_of_copies'):
      return tf.group(*[copy.assign(first.read_value(), read_value=False)
                        for first, *others in copies for copy in others])

  def init_all(self, scaffold: Optional[tf1.train.Scaffold]) -> Any:
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

    return tf1.train.Scaffold(copy_from_scaffold=scaffold, init_fn=init)

  def _variables(self) -> list[tf.Variable]:
    made = [variable() for variable in (self._made or {}).values()]
    return [variable for variable in made if variable is not None]

  def _audit_writes(self, audit: Optional[write_audit.WriteAudit]) -> None:
    """Raises if replicas wrote different values, unless by merge calls."""
    if audit is None or not self._use_merge_call():
      return
    made = self._variables()
    audit.check(variable for variable in made if isinstance(
        variable, _tf_internals.MirroredVariable))
    if not tf.inside_function():
      audit.settle(
          [copy.handle for variable in made
           for copy in getattr(variable, 'values', [variable])],
          len(self.worker_devices) == self._num_replicas_in_sync and len(
              self._container_strategy().group_assignment or [0]) == 1)

  def _writes(self, args, kwargs) -> shard_writes.Writes:
    """Returns the record of the values that replicas write, in a graph."""
    return shard_writes.Writes([
        _tf_internals.select_replica(replica, (args, kwargs))
        for replica in range(len(self.worker_devices))])

  def _own_groups(self, groups: list[list[int]]) -> list[int]:
    """Returns the groups of this process's replicas."""
    first = _tf_internals.index_in_cluster(self) * len(self.worker_devices)
    return groups_lib.group_of_shard(groups)[
        first:first + len(self.worker_devices)]


def _is_in_replica() -> bool:
  return not tf.distribute.in_cross_replica_context()


def _reporting(fn: Callable, strategy: tf.distribute.Strategy) -> Callable:
  """Returns `fn` with the replica's part of the loss that Estimator sums."""
  fn = _tf_internals.converted_as_here(fn)

  @functools.wraps(fn)
  @tf.autograph.experimental.do_not_convert
  def call(*args, **kwargs):
    spec = fn(*args, **kwargs)
    if getattr(spec, 'train_op', None) is None:
      return spec
    share = strategy.reduced_together / strategy.num_replicas_in_sync
    return spec._replace(loss=strategy.part_of_loss(spec.loss) * share,
                         scaffold=strategy.extended.init_all(spec.scaffold))

  return call


class LocalExtended(GroupReduction, mirrored_variables.MirroredInGraph,
                    _tf_internals.MirroredExtended):
  """The devices of one host."""

  def __init__(self, strategy: tf.distribute.Strategy,
               devices: Sequence[str]):
    super().__init__(strategy, devices=list(devices),
                     cross_device_ops=packed_reduction.PackedReduction())


class ClusterExtended(GroupReduction, mirrored_variables.MirroredInGraph,
                      _tf_internals.CollectiveAllReduceExtended):
  """The devices of every worker of a cluster, by TensorFlow's collectives."""

  def __init__(self, strategy: tf.distribute.Strategy,
               devices: Sequence[str]):
    self._devices_of_worker = tuple(devices)
    super().__init__(
        strategy, cluster_resolver=None,
        communication_options=tf.distribute.experimental.CommunicationOptions(
            bytes_per_pack=_BYTES_PER_PACK))

  def _initialize_local_devices(self, cluster_resolver, worker_device):
    del cluster_resolver
    kind = tf.DeviceSpec.from_string(self._devices_of_worker[0]).device_type
    return tuple(worker_device + d for d in self._devices_of_worker), kind


class HorovodExtended(horovod_reduction.HorovodReduction, ClusterExtended):
  """The same devices; Horovod sums, TensorFlow's collectives do all else."""
