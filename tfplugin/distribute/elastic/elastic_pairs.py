# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Averaged variable: copies, centre, worker state, turns to move it, saving."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# Existing graphs hold this name.
LOCAL_CENTER = 'local_center_variable'
FEEDBACK = 'exchange_feedback'


@dataclasses.dataclass(eq=False)
class Pair:
  """Copies and centre of one averaged variable.

  Attributes:
    copies: The copies that models compute with: the worker's, or one for each
      device of a process.
    center: The variable that is averaged, saved and served.
    trainable: False for a statistic.
    local_center: The centre as the worker saw it last, for the exploration
      penalty; None without a penalty.
    touched: For each row, whether a gradient has touched it since the last
      exchange, which moves only such rows; None: it moves all rows.
    is_dense: Whether an optimizer gets a dense gradient, beside sparse ones
      perhaps; an exchange then moves all rows.
    feedback: The part of past differences that rounding has kept from the
      centre; None with a type that needs none.
    initializer: The initializer of a copy that does not start from the centre,
      unless a warm start replaces it.
    starts_from_center: Whether the copy's `initial_value` is the centre's
      value, if it has one, so that optimizer state starts from it, too.
    is_snapshot: Whether the copy is a snapshot of another copy. An exchange
      writes the difference to the snapshot.
  """

  copies: Sequence[tf.Variable]
  center: tf.Variable
  trainable: bool
  local_center: tf.Variable | None = None
  touched: tf.Variable | None = None
  is_dense: bool = False
  feedback: tf.Variable | None = None
  initializer: tf.Operation | None = None
  starts_from_center: bool = False
  is_snapshot: bool = False

  @property
  def local(self) -> tf.Variable:
    """The worker's copy; of several devices, the first one's."""
    return self.copies[0]

  @property
  def first_value(self) -> tf.Tensor:
    """The value that the copy's initializer assigns."""
    return self.local.initializer.inputs[1]

  def keep_local_center(self, rho: elastic.Rate) -> None:
    """Makes the worker's view of the centre, if a penalty needs one."""
    if (self.trainable and elastic.is_penalty(rho) and
        self.local_center is None):
      name = self.local.name.split(':')[0]
      self.local_center = placement.worker_variable(
          lambda: (self.center.read_value() if self.initializer is None else
                   self.local.initial_value),
          f'{LOCAL_CENTER}/{name}', self.local.device,
          branching.is_reference(self.center))
      if self.starts_from_center:
        _tf_internals.initialize_with(self.local_center, self.first_value)

  def start_from(self, value: tf.Tensor) -> None:
    """Makes the copy, and the worker's view of the centre, start from it."""
    _tf_internals.initialize_with(self.local, value)
    if self.local_center is not None:
      _tf_internals.initialize_with(self.local_center, value)
    self.initializer, self.starts_from_center = self.local.initializer, True

  def keep_feedback(self) -> None:
    """Makes the variable of int8's rounding errors; call it in no branch."""
    if self.feedback is None and wire_types.is_smaller(
        wire_types.INT8, self.center.dtype):
      self.feedback = placement.worker_variable(
          lambda: tf.zeros(self.local.shape, self.local.dtype.base_dtype),
          f'{FEEDBACK}/{self.local.name.split(":")[0]}', self.local.device)

  def note_gradient(self, gradient: types.Gradient, keeps_rows: bool) -> None:
    """Makes the variable of the touched rows, if gradients touch some only."""
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    self.is_dense = self.is_dense or not is_sparse
    if keeps_rows and is_sparse and self.touched is None:
      self.touched = placement.worker_variable(
          lambda: tf.zeros([self.local.shape[0]], tf.bool), 'touched_rows',
          self.local.device)

  def variables(self) -> list[tf.Variable]:
    """Returns the variables that an exchange writes."""
    return [v for v in (*self.copies, self.center, self.local_center,
                        self.touched, self.feedback) if v is not None]


def penalized(gradient: types.Gradient, copy: tf.Variable, pair: Pair,
              rho: elastic.Rate) -> types.Gradient:
  """Adds the gradient of the exploration penalty to `gradient`; None is 0."""
  pair.keep_local_center(rho)
  if pair.local_center is None or not elastic.is_penalty(rho):
    return gradient
  pull = elastic.exploration_gradient(
      copy.read_value(), pair.local_center.read_value(), rho)
  return pull if gradient is None else tf.convert_to_tensor(gradient) + pull


def note_touched(touched: tf.Variable,
                 gradient: types.Gradient) -> tf.Operation:
  """Returns the op that notes the rows, maybe all, of a gradient."""
  rows = (gradient.indices if isinstance(gradient, tf.IndexedSlices) else
          tf.range(touched.shape[0]))
  return write(touched, 'update', tf.ones_like(rows, tf.bool), rows)


def worker_state(pairs: Sequence[Pair], rho: elastic.Rate,
                 exchange_dtype: str | None) -> list[tf.Variable]:
  """Returns the worker's variables beside the copies, as far as they exist."""
  views = [pair.local_center for pair in pairs if elastic.is_penalty(rho)]
  feedbacks = [pair.feedback for pair in pairs
               if exchange_dtype == wire_types.INT8]
  touched = [pair.touched for pair in pairs]
  return [v for v in (*views, *feedbacks, *touched) if v is not None]


def read(variable: tf.Variable, rows: tf.Tensor | None = None) -> tf.Tensor:
  """Returns a variable, or some `rows` of it, read on the variable's device."""
  with placement.device_override(variable.device):
    return (variable.read_value() if rows is None else
            branching.read_rows(variable, rows))


def read_if(turn: tf.Tensor | None, variable: tf.Variable,
            rows: tf.Tensor | None = None) -> tf.Tensor:
  """Reads a variable if `turn` is true or None; else returns zeros."""
  value = read(variable, rows)
  return value if turn is None else tf.where(turn, value, tf.zeros_like(value))


def write(variable: tf.Variable, how: str, value: tf.Tensor,
          rows: tf.Tensor | None = None, **kwargs):
  """Assigns as `how`, 'add', 'sub' or 'update', on the variable's device."""
  with placement.device_override(variable.device):
    if rows is not None:
      return getattr(variable, f'scatter_{how}')(tf.IndexedSlices(value, rows))
    assign = 'assign' if how == 'update' else f'assign_{how}'
    return getattr(variable, assign)(value, read_value=False, **kwargs)


def write_if(turn: tf.Tensor | None, variable: tf.Variable, value: tf.Tensor,
             rows: tf.Tensor | None = None):
  """Assigns a value if `turn` is true or None."""
  if turn is None:
    return write(variable, 'update', value, rows)
  with placement.device_override(variable.device):
    return branching.cond(
        turn, lambda: branching.done([write(variable, 'update', value, rows)]),
        updated=[variable])


def after(value: Any, operations: Sequence) -> Any:
  """Returns `value`, available only once `operations` have run."""
  with tf1.control_dependencies(operations):
    if value is None or isinstance(value, tf.Operation):
      return value and tf.no_op()
    return tf.nest.map_structure(tf.identity, value, expand_composites=True)


class Turn:
  """Turn of one of several calls of an optimizer to move some variables.

  The first call of a session run that asks gets the turn of this run. Calls may
  ask at the same time.

  Attributes:
    is_fixed: Whether a call in a branch has the turn, and so keeps it.
    variable: Counts the calls that asked; an int64 scalar on the worker.
  """

  def __init__(self, pairs: Iterable[Pair], device: str = '',
               is_fixed: bool = False):
    """Creates the variable on the worker's `device`."""
    self.pairs, self.is_fixed = set(pairs), is_fixed
    self.variable = placement.worker_variable(
        lambda: tf.zeros([], tf.int64), 'elastic_average/turns', device)
    with tf.init_scope(), placement.device_override(device):
      self._before = self.variable.read_value()  # Once in a run.

  def take(self, due: tf.Tensor) -> tf.Tensor:
    """Returns whether it is the call's turn; it asks if it is `due`."""
    with placement.device_override(self.variable.device):
      # In the current graph: a branch of v2 waits for no op outside of it.
      before = tf.identity(self._before)

    def ask():
      # An atomic operation, unlike an assignment and a read.
      asked = tf.raw_ops.ResourceCountUpTo(
          resource=self.variable.handle, limit=tf.int64.max, T=tf.int64)
      return tf.equal(asked, before)

    with tf1.control_dependencies([before]), (
        placement.device_override(self.variable.device)):
      return tf.cond(tf.identity(due), ask, lambda: tf.constant(False))


class StepTurns:
  """The turns that one step asks for, each once, and their encoding.

  A separate session run gets one number from its step. For each turn the number
  is doubled, and 1 is added if it is the step's turn.
  """

  def __init__(self, turns: Sequence[Turn] = ()):
    """Stores the turns; a variable is in one of them at most."""
    self._turns = turns
    self._taken = {}

  def join(self, number: tf.Tensor, pairs: Sequence[Pair],
           due: tf.Tensor) -> tf.Tensor:
    """Asks for the turns of `pairs` if `due`; returns them with `number`."""
    for turn in self._of(pairs):
      if turn not in self._taken:
        self._taken[turn] = turn.take(due)
      number = 2 * number + tf.cast(self._taken[turn], tf.int64)
    return number

  def split(self, number: tf.Tensor, pairs: Sequence[Pair],
            ) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
    """Returns the number, and whether it is the turn of each of `pairs`.

    None stands for a variable that no other call moves.
    """
    result = [None] * len(pairs)
    for turn in reversed(self._of(pairs)):
      number, taken = number // 2, tf.equal(number % 2, 1)
      result = [taken if pair in turn.pairs else other
                for pair, other in zip(pairs, result)]
    return number, result

  def _of(self, pairs):
    return [turn for turn in self._turns
            if any(pair in turn.pairs for pair in pairs)]


def rates_of(rate: elastic.Rate, turns: Sequence[tf.Tensor | None],
             ) -> list[elastic.Rate]:
  """Returns the moving rates of variables: 0 if it is not their turn."""
  shares = [None if turn is None else tf.cast(turn, tf.float64)
            for turn in turns]
  return [rate if share is None else elastic.as_type_of(share, rate) * share
          for share in shares]


def all_variables(pairs: Sequence[Pair],
                  optimizer_state: Iterable[tf.Variable],
                  is_applied: bool = True) -> list:
  """Returns the variables that a Saver would hold without elastic averaging.

  Warns if no optimizer `is_applied` yet, and has no state to save.
  """
  if not is_applied:
    tf1.logging.warning(
        'The Saver of `swapping_saver()` has no state of the optimizer, which '
        'is not applied yet. A training that continues from its checkpoints '
        'would start without momentum. Call it after `minimize`.')
  averaged = [pair.local for pair in pairs]
  centers = {pair.center.ref() for pair in pairs}
  found = {variable.ref(): variable for variable in (
      *averaged, *optimizer_state, *tf1.global_variables())
      if variable.ref() not in centers}
  return [*found.values(),
          *tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)]


def swapped(pairs: Sequence[Pair],
            var_list: Iterable | Mapping) -> dict:
  """Returns the variables for a Saver, by name: centres in place of copies.

  Variables are compared by identity, never by name. A variable without a
  centre, and a centre itself, are saved under their own names. A partitioned
  variable becomes the list of its parts. The names of a mapping `var_list` are
  kept.
  """
  if not isinstance(var_list, Mapping):
    var_list = _tf_internals.variables_by_saved_name(var_list)
  centers = {pair.local.ref(): pair.center for pair in pairs}

  def swap(value):
    if isinstance(value, tf.Variable):
      return centers.get(_tf_internals.own_variable(value).ref(), value)
    return [swap(p) for p in value] if isinstance(value, Iterable) else value

  return {name: swap(value) for name, value in var_list.items()}
