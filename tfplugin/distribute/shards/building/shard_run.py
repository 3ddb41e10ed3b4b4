# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run of one function in every shard of a process: its ops and turns.

Shards are built in turns, each in a thread. A shard waits for the others in a
merge call of its replica context.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import all_reduce
from tfplugin.distribute.shards.building import merge_calls
from tfplugin.distribute.shards.building import op_record
from tfplugin.distribute.shards.building import shard_models
from tfplugin.distribute.shards.writes import batch_values

tf1 = tf.compat.v1

_OWN_CHANGE = (
    'Each shard changes its own gradients by %s (%s), before they are summed. '
    'If this clips them, it clips the gradients of one shard, as on a TPU, and '
    'not their sum. To clip the sum, call `gradient = '
    'tfplugin.cross_replica_sum(gradient)` first, for each gradient, and apply '
    'the clipped sums with the plain optimizer, which does not sum them again.')


class ShardRun:
  """Run that builds one function in every shard.

  Attributes:
    branches: The branches in which shards make calls.
    values: The batch values of each shard.
    models: Set before the shards are built if each builds a model, else None.
    losses: The losses that a model_fn returned, one for each shard.
    results: The results of `call`, one for each shard.
  """

  def __init__(self, batch: Sequence[Any],
               gradients: op_record.NotedGradients | None = None):
    """Prepares a run for the tensors of each shard of this process.

    `gradients` belong to an outer run, or are None.
    """
    self.batch = batch
    self.branches = merge_calls.Branches()
    self.gradients = gradients or op_record.NotedGradients()
    self.record = op_record.OpRecord(
        tf1.get_default_graph(), len(batch))
    self.values = [batch_values.BatchValues(self.record, batch, shard)
                   for shard in range(len(batch))]
    self.models: shard_models.ShardModels | None = None
    self.losses, self.results = [], []
    self._count = itertools.count()
    self._waits = ['its start'] * len(batch)
    self._has_warned = False

  def around(self, fn: Callable) -> Callable:
    """Returns `fn` for a strategy, which calls it in each shard in turn."""
    fn = _tf_internals.converted_as_here(fn)

    @functools.wraps(fn)
    @tf.autograph.experimental.do_not_convert
    def build(*args, **kwargs):
      shard, outer = next(self._count), tf.distribute.get_replica_context()
      context = _tf_internals.copy_of_replica_context(outer)
      context.tfplugin_run, context.tfplugin_shard = self, shard
      context.merge_call = functools.partial(self._merge_call, outer, shard)
      if self.models is not None:
        context.all_reduce = functools.partial(all_reduce.all_reduce, context)
      with context:
        self._resume(shard)
        with contextlib.ExitStack() as stack:
          if self.models is not None:
            self.models.enter(shard, stack)
          stack.enter_context(tf.variable_creator_scope(
              functools.partial(self._create_for_all, shard)))
          try:
            result = fn(*args, **kwargs)
          except (TypeError, ValueError) as error:
            if shard:
              self.branches.explain(error)
            raise
        self._pause(shard, 'its end')
      return result

    return build

  def has_rows(self, value: Any) -> bool:
    """Returns whether `value` depends on the rows of the current shard."""
    return current() is self and tf.is_symbolic_tensor(value) and self.values[
        tf.distribute.get_replica_context().tfplugin_shard].is_of_rows(value)

  def warn_of_own_change(self, gradient: Any) -> None:
    """Warns once if a shard changes a gradient before it is summed."""
    # The other shards may be of other processes.
    num_shards = tf.distribute.get_strategy().num_shards
    if self._has_warned or num_shards == 1 or not tf.is_symbolic_tensor(
        getattr(gradient, 'values', gradient)):
      return
    op = self.gradients.changed_by(gradient)
    if op is not None:
      self._has_warned = True
      tf1.logging.warning(_OWN_CHANGE, op.name, op.type)

  def disagreement(self) -> RuntimeError:
    """Returns the error for shards that wait in different calls."""
    states = '; '.join(f'shard {shard} is at {label}'
                       for shard, label in enumerate(self._waits))
    return RuntimeError(
        'Shards must compute gradients, apply optimizers and update variables '
        f'in the same order. Received: a model_fn of which {states}. Make the '
        'same calls whatever the shard.')

  def _merge_call(self, outer: tf.distribute.ReplicaContext, shard: int,
                  merge_fn: Callable, args: tuple = (),
                  kwargs: dict | None = None) -> Any:
    """Replaces the `merge_call` of a shard, which may be in a branch."""
    place = _tf_internals.Place()
    if place == self.branches.outside and _tf_internals.is_moving_average(
        inspect.unwrap(merge_fn)):
      args = (args[0], self._of_batch(shard, *args))
    call = merge_calls.Call(
        merge_calls.label_of(merge_fn, args), place, args, kwargs or {})
    with contextlib.ExitStack() as stack:
      if self.branches.is_current():
        stack.enter_context(self.branches.outside.entered())
      elif place != self.branches.outside:
        if tf.executing_eagerly():  # Lifted out of a function.
          with outer:
            return outer.merge_call(merge_fn, args, kwargs)
        raise RuntimeError(
            'Calls in which shards wait for each other must be outside of '
            '`tf.cond`, `tf.while_loop` and `tf.function`. Received: '
            f'{call.label} inside one of these. Make the call in every step, '
            'and let branches choose the values that it is given.')
      stack.enter_context(outer)
      self._pause(shard, call.label)
      result = outer.merge_call(
          functools.partial(self._merged, merge_fn), args=(call,))
      self._resume(shard)
      return result

  def _of_batch(self, shard: int, average: tf.Variable, value: Any) -> Any:
    """Returns the batch value of a `value` that a moving average is given."""
    own = self.values[shard]
    if tf.distribute.get_strategy().num_shards == 1 or self.gradients.made(
        value) or not own.is_of_rows(value):
      return value
    try:
      return own.of_all(value, batch_values.gathered)
    except batch_values.UnknownValueError as error:
      if not shard:
        tf1.logging.warning(
            'The moving average `%s` is given the mean over the shards of a '
            'number that each computes from its own rows. It cannot be '
            'computed from all rows: %s.', average.name, error)
      return value

  def _merged(self, merge_fn: Callable, strategy: tf.distribute.Strategy,
              calls: Any) -> Any:
    """Returns the result of `merge_fn`, called once while all shards wait."""
    calls = strategy.experimental_local_results(calls)
    if len({call.label for call in calls}) > 1:
      raise self.disagreement()
    if calls[0].place != self.branches.outside:
      strategy.extended.check_branch(calls[0].label)
    with self.record.for_all_shards(calls[0].place.graph), (
        self.models.together() if self.models else contextlib.nullcontext()):
      return self.branches.run(merge_fn, strategy, calls)

  def _pause(self, shard: int, label: str) -> None:
    """Ends a turn of `shard`, which waits in `label`."""
    self.record.end(shard)
    if self.models is not None:
      self.models.collections.keep(shard)
    elif shard:
      # Made only so that all shards build the same graph.
      summaries = tf1.get_collection_ref(tf1.GraphKeys.SUMMARIES)
      summaries[:] = [summary for summary in summaries
                      if not self.record.is_own(shard, summary.op)]
    self._waits[shard] = label

  def _resume(self, shard: int) -> None:
    """Assigns the ops that are made from now on to `shard`."""
    self.record.begin(shard)
    if self.models is not None:
      self.models.collections.show(shard)

  def _create_for_all(self, shard: int, next_creator: Callable,
                      **kwargs: Any) -> tf.Variable:
    """Makes a variable, whose ops belong to no shard."""
    with self.record.pausing(shard):
      if self.models is not None:
        return self.models.variables.create(shard, next_creator, kwargs)
      return next_creator(**kwargs)


@tf.autograph.experimental.do_not_convert
def call(make: Callable[[], Any], rows: Any) -> ShardRun:
  """Returns the run, with the result of `make` for a shard with these `rows`.

  The run is the same in all shards, so a strategy returns it as it is.
  """
  del rows
  run = current()
  run.results.append(make())
  return run


def current() -> ShardRun | None:
  """Returns the run of the shard that is being built, or None."""
  return getattr(tf.distribute.get_replica_context(), 'tfplugin_run', None)
