# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""An averaged variable, and what a communication moves between its halves."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.distribute.variables import row_reads
from tfplugin.distribute.variables import worker_variables
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# Old graphs hold this name.
LOCAL_CENTER = 'local_center_variable'
FEEDBACK = 'exchange_feedback'


@dataclasses.dataclass(eq=False)
class Pair:
  """One averaged variable: its copies and its centre.

  Attributes:
    copies: The copies that models compute with: the worker's, or one for each
      device of a process.
    center: The variable that is averaged, saved and served.
    trainable: Whether the variable is trained; a statistic is not.
    local_center: The centre as the worker saw it last, which the exploration
      penalty pulls to; None while there is no penalty.
    touched: A bool for each row, whether a gradient has touched it since the
      last communication, which moves only such rows; None: it moves all rows.
    feedback: What the copy has given and the centre has not got yet, since the
      type on the way is too coarse; None with a type that needs none.
    initializer: The initializer of a copy that does not start from the centre,
      unless a warm start replaces it.
    is_snapshot: Whether the copy stands for another one, which it was taken of,
      and is to hold what that one loses.
  """

  copies: Sequence[tf.Variable]
  center: tf.Variable
  trainable: bool
  local_center: Optional[tf.Variable] = None
  touched: Optional[tf.Variable] = None
  feedback: Optional[tf.Variable] = None
  initializer: Optional[tf.Operation] = None
  is_snapshot: bool = False

  @property
  def local(self) -> tf.Variable:
    """The copy of a worker that has one."""
    return self.copies[0]

  def keep_local_center(self, rho: elastic.Rate) -> None:
    """Makes the worker's view of the centre, where a penalty needs one.

    Args:
      rho: The strength of the penalty.
    """
    if (self.trainable and elastic.is_penalty(rho) and
        self.local_center is None):
      name = self.local.name.split(':')[0]
      self.local_center = worker_variables.create(
          lambda: (self.center.read_value() if self.initializer is None else
                   self.local.initial_value),
          f'{LOCAL_CENTER}/{name}', self.local.device,
          branching.is_reference(self.center))

  def keep_feedback(self) -> None:
    """Makes the memory of what int8 rounds away, which a branch must not."""
    if self.feedback is None and wire_types.is_smaller(
        wire_types.INT8, self.center.dtype):
      self.feedback = worker_variables.create(
          lambda: tf.zeros(self.local.shape, self.local.dtype.base_dtype),
          f'{FEEDBACK}/{self.local.name.split(":")[0]}', self.local.device)

  def variables(self) -> list[tf.Variable]:
    """The variables that a communication writes."""
    return [v for v in (*self.copies, self.center, self.local_center,
                        self.touched, self.feedback) if v is not None]


def penalized(gradient: types.Gradient, copy: tf.Variable, pair: Pair,
              rho: elastic.Rate) -> types.Gradient:
  """Returns `gradient` plus the gradient of the exploration penalty.

  Args:
    gradient: The gradient of the loss at `copy`; None stands for 0.
    copy: One of the pair's copies.
    pair: The averaged variable; a statistic has no penalty.
    rho: The strength of the penalty; with the number 0 there is none.
  """
  pair.keep_local_center(rho)
  if pair.local_center is None or not elastic.is_penalty(rho):
    return gradient
  pull = elastic.exploration_gradient(
      copy.read_value(), pair.local_center.read_value(), rho)
  return pull if gradient is None else tf.convert_to_tensor(gradient) + pull


def worker_state(pairs: Sequence[Pair], rho: elastic.Rate,
                 exchange_dtype: Optional[str]) -> list[tf.Variable]:
  """Returns the variables that a worker has beside the copies so far.

  Args:
    pairs: The averaged variables.
    rho: The strength of the penalty, which needs a view of the centre.
    exchange_dtype: The type on the way, which may need a feedback.
  """
  views = [pair.local_center for pair in pairs if elastic.is_penalty(rho)]
  feedbacks = [pair.feedback for pair in pairs
               if exchange_dtype == wire_types.INT8]
  touched = [pair.touched for pair in pairs]
  return [v for v in (*views, *feedbacks, *touched) if v is not None]


class Wire(NamedTuple):
  """How values cross the network in one communication.

  Attributes:
    dtype: One of `wire_types.TYPES`.
    dither: For the centre, see `wire_types.encode`.
  """

  dtype: str
  dither: wire_types.Dither = 0.5


class Seen(NamedTuple):
  """What a worker gets of a centre.

  Attributes:
    sent: The value, or what stands for it in a smaller type.
    rows: The ids of the rows, or None for the whole variable.
  """

  sent: tf.Tensor
  rows: Optional[tf.Tensor]


class Differences(NamedTuple):
  """What a communication of one variable is going to move.

  Attributes:
    of_copies: The difference of each copy from the centre, times the rate.
    center: The centre before it moves, as the worker sees it.
    rows: The ids of the rows, or None for the whole variable.
    sent: What goes to the centre; None: the sum of what several copies lose.
    kept: What the feedback is then; None where there is none.
  """

  of_copies: Sequence[tf.Tensor]
  center: tf.Tensor
  rows: Optional[tf.Tensor]
  sent: Optional[tf.Tensor] = None
  kept: Optional[tf.Tensor] = None


def seen_of(pair: Pair, wire: Optional[Wire] = None) -> Seen:
  """Returns what leaves a centre for the worker, at the centre's end.

  Args:
    pair: The variable.
    wire: As for `differences_of`.
  """
  rows = _touched_rows(pair)
  value = _read(pair.center, rows)
  if not _is_rounded(pair, wire):
    return Seen(value, rows)
  with placement.only_on(pair.center.device):
    return Seen(wire_types.encode(value, wire.dtype, wire.dither), rows)


def differences_of(pair: Pair, moving_rate: elastic.Rate,
                   wire: Optional[Wire] = None,
                   seen: Optional[Seen] = None) -> Differences:
  """Returns what one communication of a variable moves.

    d[i] = moving_rate * (copy[i] - center),  of the values before any moves

  The centre crosses the network once.

  Args:
    pair: The variable.
    moving_rate: The share of the difference that moves.
    wire: The smaller type in which the centre and the difference of the one
      copy cross the network; None: in their own.
    seen: What `seen_of` returned, at the worker's end; None: it goes there by
      itself.
  """
  center, rows = seen or seen_of(pair, wire)
  if _is_rounded(pair, wire):
    return _rounded_differences(pair, moving_rate, wire, center, rows)
  differences = []
  for copy in pair.copies:
    with placement.only_on(copy.device):
      differences.append(
          elastic.elastic_difference(_read(copy, rows), center, moving_rate))
  return Differences(differences, center, rows,
                     None if differences[1:] else differences[0])


def _is_rounded(pair, wire):
  return wire is not None and wire_types.is_smaller(
      wire.dtype, pair.center.dtype)


def _rounded_differences(pair, moving_rate, wire, sent, rows):
  """The same with Q(v), what is left of a value v at the other end.

    without feedback:  d = Q(moving_rate * (copy - Q(center)))
                       copy -= d;   center += d
    with feedback:     d = moving_rate * (copy - Q(center));  e = d + feedback
                       copy -= d;   center += Q(e);   feedback = e - Q(e)

  In both the sum of copy, centre and feedback stays.
  """
  with placement.only_on(pair.local.device):
    copy = _read(pair.local, rows)
    shape = pair.local.shape if rows is None else tf.shape(copy)
    center = wire_types.decode(sent, shape, copy.dtype)
    difference = elastic.elastic_difference(copy, center, moving_rate)
    owed = difference if pair.feedback is None else (
        difference + _read(pair.feedback, rows))
    sent = wire_types.encode(owed, wire.dtype, keeps_zero=True)
    arrives = wire_types.decode(sent, shape, copy.dtype)
    if pair.feedback is None:
      return Differences([arrives], center, rows, sent)
    return Differences([difference], center, rows, sent, owed - arrives)


def move(pair: Pair, differences: Differences,
         use_locking: bool = True) -> tf.Operation:
  """Returns the op of one variable's communication.

    copy[i] -= d[i];   center += sum{i} d[i];   local_center = center before

  A snapshot becomes d. The sum crosses the network once.

  Args:
    pair: The variable.
    differences: Those of `differences_of`.
    use_locking: Whether the centre, if it is a reference variable, is updated
      under a lock; a resource variable always is.
  """
  rows, center = differences.rows, differences.center
  how = 'update' if pair.is_snapshot else 'sub'
  moves = [write(copy, how, difference, rows)
           for copy, difference in zip(pair.copies, differences.of_copies)]
  kept = []
  if pair.local_center is not None:
    kept = [write(pair.local_center, 'update', center, rows)]
  if differences.kept is not None:
    moves.append(write(pair.feedback, 'update', differences.kept, rows))
  # The value of a reference variable may be its buffer: take it over before it
  # changes. Else nothing to wait for, which would be a message of its own.
  first = kept if branching.is_reference(pair.center) else []
  with tf1.control_dependencies(first), placement.only_on(pair.center.device):
    moves += [*kept, write(pair.center, 'add', _arriving(pair, differences),
                           rows, use_locking=use_locking)]
  if pair.touched is not None:
    with tf1.control_dependencies(moves):
      moves = [write(pair.touched, 'update', tf.zeros_like(pair.touched))]
  return tf.group(*[m for m in moves if m is not None])


def move_nothing(pair: Pair) -> list:
  """Returns the ops of a communication that is not made: none but a snapshot's.

  Args:
    pair: The variable.
  """
  return [write(copy, 'update', tf.zeros(copy.shape, copy.dtype.base_dtype))
          for copy in pair.copies if pair.is_snapshot]


def _arriving(pair: Pair, differences: Differences) -> tf.Tensor:
  """What the centre gains, computed where it is."""
  if differences.sent is None:
    return tf.add_n(differences.of_copies)
  shape = pair.center.shape
  if differences.rows is not None:
    shape = tf.concat([[tf.size(differences.rows)], shape[1:]], 0)
  return wire_types.decode(
      differences.sent, shape, pair.center.dtype.base_dtype)


def _touched_rows(pair: Pair) -> Optional[tf.Tensor]:
  """The ids of the rows to move, or None for the whole variable."""
  if pair.touched is None:
    return None
  with placement.only_on(pair.touched.device):
    return tf.reshape(tf.where(pair.touched.read_value()), [-1])


def _read(variable: tf.Variable, rows: Optional[tf.Tensor]) -> tf.Tensor:
  with placement.only_on(variable.device):
    return (variable.read_value() if rows is None else
            row_reads.gather(variable, rows))


def write(variable: tf.Variable, how: str, value: tf.Tensor,
          rows: Optional[tf.Tensor] = None, **kwargs):
  """Assigns to a variable, or to some of its rows, where it is.

  Args:
    variable: The variable.
    how: `'add'`, `'sub'` or `'update'`.
    value: What is assigned.
    rows: The ids of the rows; None for the whole variable.
    **kwargs: For the assignment of a whole variable.
  """
  with placement.only_on(variable.device):
    if rows is not None:
      return getattr(variable, f'scatter_{how}')(tf.IndexedSlices(value, rows))
    assign = 'assign' if how == 'update' else f'assign_{how}'
    return getattr(variable, assign)(value, read_value=False, **kwargs)
