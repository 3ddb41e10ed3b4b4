# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One function built in every tower: waiting for each other, and sharing."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import loss_denominators
from tfplugin.distribute.towers import tower_collections
from tfplugin.distribute.towers import tower_gradients
from tfplugin.distribute.towers import tower_variables
from tfplugin.distribute.towers import tower_weights
from tfplugin.distribute.towers import tower_writes
from tfplugin.distribute.variables import branch_calls
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1


class TowerContext(_tf_internals.MirroredReplicaContext):
  """The replica context of one tower of a `TowerRun`."""

  def __init__(self, strategy, tower: int, run: TowerRun):
    super().__init__(strategy, tower)
    self._tower = tower
    self._run = run

  @property
  def tower(self) -> int:
    """The index of the tower."""
    return self._tower

  @property
  def num_towers(self) -> int:
    """How many towers there are."""
    return self._run.num_towers

  def all_reduce(self, reduce_op, value, options=None):
    """Reduces `value` over the towers; gradients flow to every tower.

    The inherited method refuses, in a graph, values that depend on variables
    shared by the towers.
    """
    del options
    if isinstance(reduce_op, str):
      reduce_op = tf.distribute.ReduceOp(reduce_op.upper())
    parts = tf.nest.flatten(value)
    if reduce_op == tf.distribute.ReduceOp.MEAN:
      weight = self._run.weights.rows[self._tower]
      parts = [weighted_sum.weighted_sum([part], [weight]) for part in parts]
    totals = self._labelled(
        f'all_reduce ({reduce_op})', self._run.add_up, tuple(parts), {})
    return tf.nest.pack_sequence_as(value, [
        total if isinstance(total, tf.IndexedSlices) else
        tower_gradients.total_of_towers(part, total)
        for part, total in zip(parts, totals)])

  def gradient_of_part(self, gradient: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of the part that this tower added to a total.

    Args:
      gradient: The gradient of the total in this tower.
    """
    weights = self._run.weights.loss
    total, = self._labelled(
        'the gradient of an all_reduce', self._run.add_up,
        (weighted_sum.weighted_sum([gradient], [weights[self._tower]]),), {})
    return tf.math.divide_no_nan(
        total, tf.cast(weights[self._tower], total.dtype))

  def view_of(self, variable: tf.Variable) -> tf.Variable:
    """Returns `variable` as this tower reads it."""
    return self._run.view(self._tower, variable)

  def reduce_gradient(self, handle: tf.Tensor, gradient):
    """Returns the sum over the towers of each tower's `gradient`."""
    return self._labelled(
        f'the gradient of `{self._run.name_of(handle)}`',
        self._run.sum_gradients, (gradient,), {})

  @property
  def gradients_are_summed(self) -> bool:
    """Whether `tf.gradients` in a tower returns the gradient of the batch."""
    return self._run.gradients_are_summed

  def sum_gradient(self, variable: tf.Variable, gradient,
                   towers: Sequence[int]):
    """Returns the plain sum over `towers`, which is applied as it is."""
    if self._run.branches.is_here():
      # Refused by the update that follows, unless all towers have the same.
      return self._run.sum_unweighted(self.strategy, gradient, towers)
    return self._labelled(
        f'the sum of the gradient of `{variable.name}`',
        functools.partial(self._run.sum_unweighted, towers=towers),
        (gradient,), {})

  def value_of_shards(self, variable: tf.Variable, method: str, value):
    """Returns the one value that the towers write, each with its own.

    Args:
      variable: A variable that was made without an `aggregation`.
      method: The method that writes.
      value: The value of this tower.
    """
    if self._run.gradients_are_summed or self._run.branches.is_here():
      return value  # One computation, or the write itself compares.
    return self._labelled(
        f'`{method}` of `{variable.name}`',
        functools.partial(self._run.one_value, variable, method), (value,), {})

  def _merge_call(self, fn: Callable, args: tuple, kwargs: dict):
    label = branch_calls.label_of(fn, args)
    branches, place = self._run.branches, _tf_internals.Place()
    if not branches.is_here():
      return self._labelled(label, fn, args, kwargs)
    with branches.outside.entered():
      return self._labelled(label, fn, args, kwargs, place)

  def _labelled(self, label: str, fn: Callable, args: tuple, kwargs: dict,
                place: Optional[_tf_internals.Place] = None):
    run = self._run
    run.check_can_wait(label)
    run.pause(self._tower, label)
    call = branch_calls.Call(
        label, place or run.branches.outside, args, kwargs)
    # Only the function of tower 0 is run, with the arguments of all towers.
    result = super()._merge_call(run.merged(fn), (call,), {})
    run.resume(self._tower)
    return result


def current_tower() -> Optional[TowerContext]:
  """Returns the context of the tower that is being built, or None."""
  context = tf.distribute.get_replica_context()
  return context if isinstance(context, TowerContext) else None


class TowerRun:
  """Builds one function once per tower into one graph.

  Attributes:
    weights: The `TowerWeights` of the batch.
    variables: The `SharedVariables`.
    num_towers: How many towers there are.
    summed: The `SummedGradients` of this run, and of those inside it.
    branches: The `Branches` in which towers make calls.
  """

  def __init__(self, strategy, weights: tower_weights.TowerWeights,
               sum_gradients: bool, outer: Optional[TowerRun] = None):
    """Prepares a run.

    Args:
      strategy: A `TowerStrategy`.
      weights: How much each tower counts.
      sum_gradients: Whether `tf.gradients` in a tower sums over the towers.
      outer: The run whose gradients this one applies, or None.
    """
    self.weights = weights
    self.variables = tower_variables.SharedVariables()
    self._strategy = strategy
    self.num_towers = strategy.num_replicas_in_sync
    self._sum_gradients = sum_gradients
    self._graph = tf1.get_default_graph()
    self._branch = _tf_internals.branch_or_loop()
    self.branches = branch_calls.Branches()
    self._collections = tower_collections.TowerCollections(
        self._graph, self.num_towers)
    self.summed = (outer.summed if outer is not None else
                   tower_gradients.SummedGradients())
    self._views = {}
    self._names = {}
    self._waits = ['its start'] * self.num_towers
    self._results = [None] * self.num_towers
    # Absolute: a tower's ops are named the same wherever the run is made.
    outer = self._graph.get_name_scope()
    self._outer = outer + '/' if outer else ''
    self._devices = _tf_internals.device_functions()
    self._num_ops_before = len(self._graph.get_operations())

  @property
  def gradients_are_summed(self) -> bool:
    """Whether `tf.gradients` in a tower sums over the towers."""
    return self._sum_gradients

  def build(self, fn: Callable[[int], Any]) -> list[Any]:
    """Returns `[fn(0), fn(1), ...]`, each built in its tower."""
    scope = tf1.get_variable_scope()
    try:
      # The weight of a tower makes the mean already.
      with _tf_internals.keras_means_of_losses(
          lambda: current_tower() is not None):
        _tf_internals.call_for_each_replica(
            self._strategy, tf.autograph.experimental.do_not_convert(
                lambda tower: self._in_tower(tower, fn, scope)),
            args=(_tf_internals.regroup(tuple(range(self.num_towers))),))
      self.variables.check_all_taken()
      self.branches.check_conditions()
    except RuntimeError as error:
      if _tf_internals.is_disagreement(error):
        raise RuntimeError(self._disagreement()) from error
      raise
    finally:
      self._collections.join()
    for group in self.weights.groups or [range(self.num_towers)]:
      loss_denominators.share([self.ops_of(tower) for tower in group],
                              [self.weights.loss[tower] for tower in group])
    return self._results

  def ops_of(self, tower: int) -> list[tf.Operation]:
    """Returns the ops that were built in `tower`."""
    scopes = [self.name_scope(i) for i in range(1, self.num_towers)]
    new = self._graph.get_operations()[self._num_ops_before:]
    if tower:
      return [op for op in new if op.name.startswith(scopes[tower - 1])]
    return [op for op in new if not op.name.startswith(tuple(scopes))]

  def name_scope(self, tower: int) -> str:
    """Returns the name scope of `tower`; the first one has none of its own."""
    return f'{self._outer}tower_{tower}/' if tower else self._outer

  def view(self, tower: int, variable: tf.Variable) -> tf.Variable:
    """Returns `variable` as `tower` reads it."""
    if not self._sum_gradients or not variable.trainable:
      return variable
    key = (tower, variable.ref())
    if key not in self._views:
      self._views[key] = tower_gradients.summing_view(variable)
      self._names[self._views[key].handle.ref()] = variable.name
    tower_gradients.record(variable, self._views[key])
    return self._views[key]

  def name_of(self, handle: tf.Tensor) -> str:
    """Returns the name of the variable that a tower reads through `handle`."""
    return self._names[handle.ref()]

  def add_up(self, strategy, *values: Any) -> list[Any]:
    """Adds each of `values`, one per tower, up over the towers."""
    return [weighted_sum.weighted_sum(
        self._per_tower(strategy, value), [1.0] * self.num_towers)
            for value in values]

  def _per_tower(self, strategy, value: Any) -> Sequence[Any]:
    """Returns the value of each tower; towers may share a single one."""
    values = strategy.experimental_local_results(value)
    return values * self.num_towers if len(values) == 1 else values

  def sum_gradients(self, strategy, gradient):
    """Sums `gradient`, one value per tower, over the towers."""
    total = weighted_sum.weighted_sum(
        self._per_tower(strategy, gradient), self.weights.loss)
    self.summed.add(total)
    return total

  def sum_unweighted(self, strategy, gradient, towers: Sequence[int]):
    """Sums the values of `gradient` in `towers`, without their weights."""
    values = self._per_tower(strategy, gradient)
    total = weighted_sum.weighted_sum(
        [values[tower] for tower in towers], [1.0] * len(towers))
    self.summed.add(total)
    return total

  def one_value(self, variable: tf.Variable, method: str, strategy, value):
    """Returns the value that towers without a common gradient write."""
    groups = self.weights.groups or [range(self.num_towers)]
    return tower_writes.one_value(
        variable, method, self._per_tower(strategy, value),
        next(group for group in groups if 0 in group))

  def gradient_to_apply(self, gradient):
    """Returns the one gradient of all towers that an optimizer applies."""
    values = self._strategy.experimental_local_results(gradient)
    if len(values) == 1 or self.summed.made_from_sum(values[0]):
      return values[0]
    return weighted_sum.weighted_sum(values, self.weights.loss)

  def check_can_wait(self, label: str) -> None:
    """Raises where no tower can wait for the others."""
    if (tf1.get_default_graph() is not self._graph or
        _tf_internals.branch_or_loop() is not self._branch):
      raise RuntimeError(
          'What towers wait for each other in must be outside of `tf.cond`, '
          f'`tf.while_loop` and `tf.function`. Received: {label} inside one of '
          'these. Make the call in every step, and let branches choose the '
          'values that it is given.')

  def pause(self, tower: int, label: str) -> None:
    """Notes that `tower` waits for the others in `label`."""
    self._collections.keep(tower)
    self._waits[tower] = label

  def resume(self, tower: int) -> None:
    """Notes that `tower` goes on."""
    self._collections.show(tower)

  def merged(self, fn: Callable) -> Callable:
    """Returns `fn` as it runs once, for all towers that wait."""
    def run(strategy, calls):
      calls = strategy.experimental_local_results(calls)
      if len({call.label for call in calls}) > 1:
        raise RuntimeError(self._disagreement())
      self._collections.show(0)
      result = self.branches.run(fn, strategy, calls)
      self._collections.keep(0)
      return result
    return run

  def _in_tower(self, tower: int, fn: Callable[[int], Any], scope) -> None:
    if tower:
      tf1.keras.backend.reset_uids()
    self._collections.show(tower)
    with self._device(tower), TowerContext(self._strategy, tower, self), \
        tf1.variable_scope(scope, auxiliary_name_scope=False), \
        tf.name_scope(self.name_scope(tower)), \
        tf.variable_creator_scope(self.variables.creator(tower)):
      self._results[tower] = fn(tower)
    self.pause(tower, 'its end')

  @contextlib.contextmanager
  def _device(self, tower: int) -> Iterator[None]:
    """Enters the device of `tower` on top of the devices around the run."""
    known = _tf_internals.device_functions()
    with contextlib.ExitStack() as stack:
      if not all(function in known for function in self._devices):
        for function in self._devices:
          stack.enter_context(tf1.device(function))
        device = self._strategy.extended.worker_devices[tower]
        stack.enter_context(tf1.device(device))
      yield

  def _disagreement(self) -> str:
    states = '; '.join(f'tower {tower} is at {label}'
                       for tower, label in enumerate(self._waits))
    return ('Towers must compute gradients, apply optimizers and update '
            'variables in the same order. Received: a model_fn of which '
            f'{states}. Make the same calls whatever the tower.')
