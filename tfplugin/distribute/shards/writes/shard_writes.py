# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates by replicas, of variables with a copy for each replica, or with one.

Gradients are accumulated over steps in a variable without an `aggregation`.
TensorFlow lets every replica add its own value to its copy. Their sum can then
not be applied in a branch of `tf.cond`, since replicas cannot sum there. Here
an addition is the mean over the replicas, so that the copies stay the same:

  sum{replicas} copy[replica]  =  sum{replicas} mean{replicas} copy[replica]

An update in a branch then needs only the copy of the first replica. The shards
of a decorator have one variable, which holds that mean.

An update by hand adds gradients to the variable that they are taken by. There
is no later sum over the replicas, so the gradients are summed as an optimizer
sums them. They are averaged if each belongs to a mean loss that was not scaled.

Other values that a model_fn writes are computed from the rows of all replicas,
as on one device (`batch_values.py`). A write is refused if its value for all
rows is not known. So no checkpoint holds a value of one replica alone.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards import shard_loss
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import batch_values
from tfplugin.distribute.variables import same_values
from tfplugin.ops import batch_parts
from tfplugin.ops import shard_reduction

_ADDITIONS = ('assign_add', 'assign_sub', 'scatter_add', 'scatter_sub')
_RESULT_OF_WRITE = (
    '{} in a branch of shards must not be given the result of an earlier '
    'write there, which only the first shard makes. Received: {!r}. Give it '
    'the value that was written, as in `new = a + delta`, `a.assign(new)`, '
    '`b.assign(new)`.')


def _writing(method: str, *arguments: str) -> Callable:
  """Returns a method that writes the batch value of its first arguments."""
  def write(self, *args, **kwargs):
    named = {**dict(zip(arguments, args)), **kwargs}
    values = [self._of_all(method, named.pop(name)) for name in arguments]
    inherited = getattr(super(BatchWrites, self), method)
    result = inherited(*values, *args[len(arguments):], **named)
    return self._assigned(values[0], result) if method == 'assign' else result

  write.__name__ = method
  write.__doc__ = f'See `tf.Variable.{method}`.'
  return write


class BatchWrites:
  """Mixin before a mirrored variable without an `aggregation`.

  Attributes:
    tfplugin_copies: The `same_values.Copies` of the shards; None: there is one.
    tfplugin_is_mean: Whether a write is the mean of the values of the replicas.
  """

  assign = _writing('assign', 'value')
  assign_add = _writing('assign_add', 'delta')
  assign_sub = _writing('assign_sub', 'delta')
  for _name in ('scatter_add', 'scatter_sub', 'scatter_update', 'scatter_max',
                'scatter_min', 'scatter_mul', 'scatter_div'):
    vars()[_name] = _writing(_name, 'sparse_delta')
  for _name in ('scatter_nd_add', 'scatter_nd_sub', 'scatter_nd_update',
                'scatter_nd_max', 'scatter_nd_min'):
    vars()[_name] = _writing(_name, 'indices', 'updates')
  del _name

  def _update_replica(self, update_fn, value, **kwargs):
    if self.tfplugin_copies is not None:
      self.tfplugin_copies.note(_tf_internals.index_of_copy(self), value)
    return super()._update_replica(update_fn, value, **kwargs)

  def _of_all(self, method: str, value: Any) -> Any:
    """Returns the value for all replicas of the group, if it is known."""
    context, run = tf.distribute.get_replica_context(), shard_run.current()
    if run is None or context.strategy.num_shards == 1:
      return value
    label = f'`{method}` of `{self.name}`'
    if run.branches.is_current():
      if isinstance(value, tf.Operation):
        raise RuntimeError(_RESULT_OF_WRITE.format(label, value))
      context.merge_call(  # It compares the values.
          merge_calls.labelled(label, functools.partial(_nothing)),
          args=(value,))
      return value
    if run.branches.outside != _tf_internals.Place():
      return value  # In a loop replicas cannot synchronize; it is audited.
    if not isinstance(value, tf.IndexedSlices):
      value = tf.convert_to_tensor(value, dtype_hint=self.dtype)
    added = self._of_gradients(run, method, value)
    if added is not None:
      return added
    own = run.values[context.tfplugin_shard]
    if own.is_of_rows(value):
      return _mean(value) if self.tfplugin_is_mean else self._of_batch(
          own, method, value, run.gradients.made(value))
    check_no_count(self, method, value, own)
    own.warn_of_counts(value)
    return self._of_no_rows(method, value)

  def _of_gradients(self, run: shard_run.ShardRun, method: str,
                    value: Any) -> Any:
    """Returns the gradients of all shards to add; None for another write."""
    if not self._is_mean_of(method):
      return None
    is_trained = trains(run, [copy.handle for copy in self.values], value)
    if not (is_trained or run.gradients.made(value)):
      return None
    if is_trained and is_sum(run, self, method, value):
      return all_reduce.sum_of_group(value)
    warn_of_mean(run, self, method, value)
    if not is_trained:
      run.gradients.accumulate(value, self)
    return _mean(value)

  def _assigned(self, value: Any, result: Any) -> Any:
    """Returns the result of an assignment, in a branch with its `value`.

    There only the first shard writes, and another one cannot read after it.
    """
    run = shard_run.current()
    if self.tfplugin_copies is not None or run is None or (
        not run.branches.is_current()):
      return result
    with tf.control_dependencies([result]):
      return tf.identity(tf.convert_to_tensor(value, self.dtype))

  def _of_no_rows(self, method: str, value: Any) -> Any:
    """Returns the written value for a `value` that depends on no rows."""
    if self._is_mean_of(method):
      return _mean(value)
    if self.tfplugin_copies is not None:
      return value
    return tf.distribute.get_replica_context().merge_call(
        merge_calls.labelled(
            f'`{method}` of `{self.name}`',
            functools.partial(_one_of_all, self, method)), args=(value,))

  def _is_mean_of(self, method: str) -> bool:
    return method in _ADDITIONS and self.dtype.is_floating

  def _of_batch(self, own: batch_values.BatchValues, method: str, value: Any,
                of_gradients: bool) -> Any:
    """Returns the batch value; raises ValueError if it is not known."""
    try:
      if of_gradients:
        raise batch_values.UnknownValueError('a value made of gradients')
      return own.of_all(value, batch_values.gathered)
    except batch_values.UnknownValueError as error:
      raise unknown(self, method, error, error.remedy) from error


def _group_size() -> int:
  strategy = tf.distribute.get_strategy()
  return shard_reduction.group_size(
      strategy.group_assignment, strategy.num_shards)


def _mean(value: all_reduce.Summand) -> all_reduce.Summand:
  """Returns the mean over the replicas of the group."""
  return batch_parts.weighted_sum(
      [all_reduce.sum_of_group(value)], [1.0 / _group_size()])


def _nothing(strategy: tf.distribute.Strategy, value: Any) -> None:
  del strategy, value


def _one_of_all(variable: tf.Variable, method: str,
                strategy: tf.distribute.Strategy, value: Any) -> Any:
  """Returns the value that all shards write; raises if their values differ.

  The write waits until each shard has computed its value, perhaps from the
  variable: a late shard would otherwise read the new one.
  """
  values = strategy.experimental_local_results(value)
  check_same(variable, method, values)
  with tf.control_dependencies(
      tf.nest.flatten(values, expand_composites=True)):
    return tf.nest.map_structure(
        tf.identity, values[0], expand_composites=True)


def one_value(run: shard_run.ShardRun, variable: tf.Tensor, method: str,
              values: Sequence[Any], group: Sequence[int]) -> Any:
  """Returns the value to write for all shards, from the value of each shard.

  Raises ValueError if the values differ and their mean would be wrong.
  """
  if same_values.are_same(values):
    return values[0]
  dtype = tf.as_dtype(getattr(values[0], 'dtype', variable.dtype))
  if method not in _ADDITIONS or not dtype.is_floating:
    check_same(variable, method, values)
  is_total = trains(run, [variable], values[0]) and is_sum(
      run, variable, method, values[0])
  if not is_total:
    warn_of_mean(run, variable, method, values[0])
  return batch_parts.weighted_sum(
      [values[i] for i in group],
      [1.0 if is_total else 1.0 / len(group)] * len(group))


def check_same(variable: tf.Variable, method: str,
               values: Sequence[Any]) -> None:
  """Raises ValueError unless all shards write the same."""
  if not same_values.are_same(values):
    dtype = tf.as_dtype(getattr(values[0], 'dtype', variable.dtype))
    raise unknown(variable, method, f'values of {dtype.name} that differ '
                  'between shards')


def check_no_count(variable: tf.Variable, method: str, value: Any,
                   own: batch_values.BatchValues) -> None:
  """Raises ValueError if a constant may be a number of the rows of a shard."""
  number = tf.get_static_value(value) if tf.is_tensor(value) else value
  if np.size(number) == 1 and not isinstance(
      number, (tf.IndexedSlices, tf.Variable)) and number is not None and (
          np.ravel(number)[0] in {*own.counts, own.num_rows} - {None}):
    raise unknown(
        variable, method, f'the constant {np.ravel(number)[0]:g}, which is the '
        'number of rows or elements of each shard, too', 'Count rows by '
        '`tf.shape(x)[0]`, and elements by `tf.size(x)`.')


def trains(run: shard_run.ShardRun, handles: Sequence[tf.Tensor],
           value: Any) -> bool:
  """Returns whether `value` has gradients of a loss made from a variable.

  The variable has `handles`. An update by hand adds such a value; another
  variable, which accumulates gradients for an optimizer, does not.
  """
  sources = graph_order.upstream(run.gradients.losses_of(value), of_values=True)
  return any(_tf_internals.outside_of_functions(op.outputs[0]) is handle
             for op in sources if not op.inputs and op.outputs
             for handle in handles)


def is_sum(run: shard_run.ShardRun, variable: Any, method: str,
           value: Any) -> bool:
  """Returns whether gradients of shards are summed, and not averaged.

  A ValueError is raised if neither is the gradient of the batch. A value that
  is not linear in the gradients is not summed.
  """
  if run.gradients.changed_by(value) is not None:
    return False
  are_parts = set(map(shard_loss.is_part, run.gradients.losses_of(value)))
  if None in are_parts or len(are_parts) > 1:
    raise unknown(
        variable, method, 'gradients of a loss in which some terms are sums '
        'over the rows and others are means', 'Take the gradients by '
        '`optimizer.compute_gradients(loss)`, which scales the means.')
  other = run.gradients.other_term(value) if True in are_parts else None
  if other is not None:
    raise unknown(
        variable, method, 'gradients, which are summed over the shards, and '
        f'{other.name}, which is not', f'Write {other.name} by a call of its '
        'own.')
  return True in are_parts


def warn_of_mean(run: shard_run.ShardRun, variable: Any, method: str,
                 value: Any) -> None:
  """Warns if a mean over the shards may not be the value of the batch."""
  context, op = (
      tf.distribute.get_replica_context(), run.gradients.changed_by(value))
  if op is not None and not getattr(context, 'tfplugin_shard', 0):
    tf.compat.v1.logging.warning(
        '`%s` of `%s` writes the mean of the shards\' own values, made of '
        'gradients by %s (%s). If that is not linear in the gradients, sum '
        'them first by `tfplugin.cross_replica_sum`.', method, variable.name,
        op.type, op.name)


def unknown(variable: tf.Variable, method: str, what: Any,
            remedy: str = '') -> ValueError:
  """Returns the error for a value that shards do not have in common.

  `what` describes the value. Without a `remedy`, the error explains how to make
  the value common.
  """
  return ValueError(
      f'`{method}` in several shards must write a value that all shards have '
      'in common, gradients, or a number computed from the rows by ops that '
      f'can be recomputed for all rows. Received: {what}, for '
      f'`{variable.name}`, made without an `aggregation`. ' + (
          remedy or 'Make it the same in all shards before it is written: '
          '`tfplugin.cross_replica_sum(s)` is the sum over all rows of a sum '
          '`s` over the rows of a shard, and a mean is such a sum divided by '
          '`tfplugin.cross_replica_sum(tf.cast(tf.shape(x)[0], s.dtype))`.'))
