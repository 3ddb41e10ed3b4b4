# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates by replicas, of variables with a copy for each replica.

Gradients are accumulated over steps in a variable without an `aggregation`.
TensorFlow lets every replica add its own value to its copy. Their sum can then
not be applied in a branch of `tf.cond`, since replicas cannot sum there. Here
an addition is the mean over the replicas, so that the copies stay the same:

  sum{replicas} copy[replica]  =  sum{replicas} mean{replicas} copy[replica]

An update in a branch then needs only the copy of the first replica.

Other values that a model_fn writes are computed from the rows of all replicas,
as on one device (`batch_values.py`). A write is refused if its value for all
rows is not known. So no checkpoint holds a value of one replica alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.shards import write_audit
from tfplugin.distribute.towers import tower_gradients
from tfplugin.distribute.towers.splitting import batch_values
from tfplugin.distribute.variables import agreed_writes
from tfplugin.distribute.variables import branch_calls
from tfplugin.distribute.variables import same_values
from tfplugin.ops import weighted_sum


class Writes:
  """The values that the replicas of one call may write.

  `gradients` records the gradients that the replicas took. `audit` finds values
  that differ between replicas; it is None without a known batch.
  """

  def __init__(self, batch: Sequence[Any]):
    """Stores the nest of tensors of each replica of this process, if known."""
    self.gradients = tower_gradients.NotedGradients()
    self.audit = write_audit.WriteAudit(batch) if batch else None
    self._count = itertools.count()

  def next_replica(self) -> int:
    """Returns the number of the replica that is built next."""
    return next(self._count)

  def of(self, variable: tf.Variable) -> Optional[batch_values.BatchValues]:
    """Returns the batch values of the replica with this copy, or None."""
    return self.audit and self.audit.values[
        _tf_internals.index_of_copy(variable)]


def in_branches(fn: Callable, branches: branch_calls.Branches,
                writes: Writes) -> Callable:
  """Returns `fn`, a replica's function, able to update in a `tf.cond` branch.

  `branches` records the calls that are made in branches, and `writes` the
  values that `fn` writes.
  """
  fn = _tf_internals.converted_as_here(fn)

  @functools.wraps(fn)
  @tf.autograph.experimental.do_not_convert
  def call(*args, **kwargs):
    outer, replica = tf.distribute.get_replica_context(), writes.next_replica()
    context = _tf_internals.copy_of_replica_context(outer)
    context.tfplugin_branches = branches
    context.tfplugin_writes = writes
    audit = writes.audit
    context.merge_call = functools.partial(
        _merge_call, outer, branches, audit, replica)
    with context, audit.replica(replica) if audit else (
        contextlib.nullcontext()):
      return fn(*args, **kwargs)

  return call


def _merge_call(outer: tf.distribute.ReplicaContext,
                branches: branch_calls.Branches,
                audit: Optional[write_audit.WriteAudit], replica: int,
                merge_fn: Callable, args: tuple = (),
                kwargs: Optional[dict] = None) -> Any:
  """Replaces the `merge_call` of a replica context that may be in a branch."""
  waiting = audit.waiting(replica) if audit else contextlib.nullcontext()
  if not branches.is_here():
    with outer, waiting:
      return outer.merge_call(merge_fn, args, kwargs)
  call = branch_calls.Call(
      branch_calls.label_of(merge_fn, args), _tf_internals.Place(), args,
      kwargs or {})

  def merged(strategy, calls):
    calls = strategy.experimental_local_results(calls)
    _check_no_groups(strategy, call.label)
    with audit.passing(calls[0].place.graph) if audit else (
        contextlib.nullcontext()):
      return branches.run(
          merge_fn, strategy, calls, functools.partial(_spread, len(calls)))

  with branches.outside.entered(), outer, waiting:
    return outer.merge_call(merged, args=(call,))


def _spread(count: int, value: Any) -> Any:
  """Makes values of `count` replicas from the values of one."""

  def per_replica(leaf):
    if not tf.is_tensor(leaf) or isinstance(leaf, tf.Variable):
      return leaf
    return _tf_internals.per_replica([leaf] * count)

  return tf.nest.map_structure(per_replica, value)


def _check_no_groups(strategy: tf.distribute.Strategy, label: str) -> None:
  groups = strategy.group_assignment
  if groups is not None and len(groups) > 1:
    raise NotImplementedError(
        '`group_assignment` with several groups cannot be with an update '
        f'inside of `tf.cond`. Received: {groups!r} and {label} in a branch. '
        'Use one group, or make the update in every step.')


def add_up(variable: tf.Variable) -> None:
  """Makes additions to a new variable means, if it has no `aggregation`.

  Only mirrored variables, with a copy for each replica, change.
  """
  if not isinstance(variable, _tf_internals.MirroredVariable):
    return
  copies = same_values.Copies([copy.handle for copy in variable.values])
  if variable.aggregation in (None, tf.VariableAggregation.NONE):
    variable.__class__ = _with_means(type(variable))
    variable.tfplugin_copies = copies
    # Its statistics are means over the replicas, as in Keras 2.
    variable.tfplugin_is_mean = variable.dtype.is_floating and (
        _tf_internals.is_asked_by_keras_3())


@functools.cache
def _with_means(kind: type) -> type:
  return type(kind.__name__, (MeanAdditions, kind), {})


class MeanAdditions:
  """Mixin before a mirrored variable without an `aggregation`."""

  def assign(self, value, *args, **kwargs):
    """Assigns the batch value; see `tf.Variable.assign`."""
    return super().assign(self._of_all('assign', value), *args, **kwargs)

  def assign_add(self, delta, *args, **kwargs):
    """Adds the mean or batch value; see `tf.Variable.assign_add`."""
    return super().assign_add(
        self._of_all('assign_add', delta), *args, **kwargs)

  def assign_sub(self, delta, *args, **kwargs):
    """Subtracts the mean or batch value; see `tf.Variable.assign_sub`."""
    return super().assign_sub(
        self._of_all('assign_sub', delta), *args, **kwargs)

  def scatter_add(self, sparse_delta, *args, **kwargs):
    """Adds the mean or batch value; see `tf.Variable.scatter_add`."""
    return super().scatter_add(
        self._of_all('scatter_add', sparse_delta), *args, **kwargs)

  def scatter_sub(self, sparse_delta, *args, **kwargs):
    """Subtracts the mean or batch value; see `tf.Variable.scatter_sub`."""
    return super().scatter_sub(
        self._of_all('scatter_sub', sparse_delta), *args, **kwargs)

  def _update_replica(self, update_fn, value, **kwargs):
    self.tfplugin_copies.note(_tf_internals.index_of_copy(self), value)
    return super()._update_replica(update_fn, value, **kwargs)

  def _of_all(self, method: str, value: Any) -> Any:
    """Returns the value for all replicas of the group, if it is known."""
    context = tf.distribute.get_replica_context()
    branches = getattr(context, 'tfplugin_branches', None)
    adds = method != 'assign' and self.dtype.is_floating
    if branches is None:
      return value
    if branches.is_here():
      context.merge_call(_nothing, args=(value,))  # It compares the values.
      return value
    if branches.outside != _tf_internals.Place():
      return value  # In a loop replicas cannot synchronize; it is audited.
    if not isinstance(value, tf.IndexedSlices):
      value = tf.convert_to_tensor(value, self.dtype)
    groups = context.strategy.group_assignment
    size = groups_lib.group_size(groups, context.num_replicas_in_sync)
    writes, own = context.tfplugin_writes, context.tfplugin_writes.of(self)
    of_gradients = writes.gradients.made(value)
    if own is not None and not (adds and of_gradients):
      if not own.is_of_rows(value):
        agreed_writes.check_no_count(self, method, value, own.num_rows)
      elif not self.tfplugin_is_mean:
        return self._of_batch(own, method, value, of_gradients, groups, size)
      adds = adds or own.is_of_rows(value)
    return weighted_sum.weighted_sum(
        [all_reduce.constant_sum(value, groups)], [1.0 / size]) if adds else (
            value)

  def _of_batch(self, own: batch_values.BatchValues, method: str, value: Any,
                of_gradients: bool, groups: Any, size: int) -> Any:
    """Returns the batch value; raises ValueError if it is not known."""
    try:
      if of_gradients:
        raise batch_values.UnknownValueError('a value made of gradients')
      return own.of_all(value, functools.partial(_gather, groups=groups), size)
    except batch_values.UnknownValueError as error:
      raise agreed_writes.unknown(self, method, error) from error


def _gather(tensor: tf.Tensor, axis: int, groups: Any) -> tf.Tensor:
  """Returns the rows of all replicas of the group, concatenated."""
  if not tensor.dtype.is_floating and not tensor.dtype.is_integer and (
      not tensor.dtype.is_bool):
    raise batch_values.UnknownValueError(f'rows of {tensor.dtype.name}')
  order = [axis, *(i for i in range(tensor.shape.rank) if i != axis)]
  rows = tf.transpose(tensor, order) if axis else tensor
  number = tf.cast(rows, tf.int32) if tensor.dtype.is_bool else rows
  # A sum of IndexedSlices concatenates their rows.
  gathered = tf.cast(all_reduce.constant_sum(tf.IndexedSlices(
      number, tf.range(tf.shape(number)[0])), groups).values, tensor.dtype)
  gathered.set_shape([None, *rows.shape[1:]])
  return tf.transpose(gathered, [
      order.index(i) for i in range(len(order))]) if axis else gathered


def _nothing(strategy: tf.distribute.Strategy, value: Any) -> None:
  del strategy, value
