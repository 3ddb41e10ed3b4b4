# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a communication moves between the halves of an averaged variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1


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
    sent: The value, or what stands for it in a smaller type, in parts.
    rows: The ids of the rows, or None for the whole variable.
    sizes: The values of each part, of the flat variable; None: it is one part,
      in its own shape.
  """

  sent: Sequence[tf.Tensor]
  rows: Optional[tf.Tensor]
  sizes: Optional[Sequence[int]] = None


class Differences(NamedTuple):
  """What a communication of one variable is going to move.

  Attributes:
    of_copies: The difference of each copy from the centre, times the rate.
    center: The centre before it moves, as the worker sees it.
    rows: The ids of the rows, or None for the whole variable.
    sent: What goes to the centre, in parts; None: the sum of what several
      copies lose.
    sizes: As in `Seen`.
    kept: What the feedback is then; None where there is none.
  """

  of_copies: Sequence[tf.Tensor]
  center: tf.Tensor
  rows: Optional[tf.Tensor]
  sent: Optional[Sequence[tf.Tensor]] = None
  sizes: Optional[Sequence[int]] = None
  kept: Optional[tf.Tensor] = None


def seen_of(pair: elastic_pairs.Pair, wire: Optional[Wire] = None,
            sizes: Optional[Sequence[int]] = None) -> Seen:
  """Returns what leaves a centre for the worker, at the centre's end.

  Args:
    pair: The variable.
    wire: As for `differences_of`.
    sizes: As in `Seen`; parts for a variable that moves whole, and of which a
      worker has one copy.
  """
  rows = _touched_rows(pair)
  with placement.only_on(pair.center.device):
    parts = _parted(elastic_pairs.read(pair.center, rows), sizes)
    if is_rounded(pair, wire):
      parts = [wire_types.encode(part, wire.dtype, wire.dither)
               for part in parts]
  return Seen(parts, rows, sizes)


def differences_of(pair: elastic_pairs.Pair, moving_rate: elastic.Rate,
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
  seen = seen or seen_of(pair, wire)
  if is_rounded(pair, wire):
    return _rounded_differences(pair, moving_rate, wire, seen)
  differences = []
  for copy in pair.copies:
    with placement.only_on(copy.device):
      parts = _parted(elastic_pairs.read(copy, seen.rows), seen.sizes)
      differences.append([
          elastic.elastic_difference(own, center, moving_rate)
          for own, center in zip(parts, seen.sent)])
  return Differences(
      [_joined(parts, copy) for parts, copy in zip(differences, pair.copies)],
      _joined(seen.sent, pair.local), seen.rows,
      None if differences[1:] else differences[0], seen.sizes)


def is_rounded(pair: elastic_pairs.Pair, wire: Optional[Wire]) -> bool:
  """Whether what a communication of `pair` moves gets smaller on the way.

  Args:
    pair: The variable.
    wire: As for `differences_of`.
  """
  return wire is not None and wire_types.is_smaller(
      wire.dtype, pair.center.dtype)


def _rounded_differences(pair, moving_rate, wire, seen):
  """The same with Q(v), what is left of a value v at the other end.

    without feedback:  d = Q(moving_rate * (copy - Q(center)))
                       copy -= d;   center += d
    with feedback:     d = moving_rate * (copy - Q(center));  e = d + feedback
                       copy -= d;   center += Q(e);   feedback = e - Q(e)

  In both the sum of copy, centre and feedback stays.
  """
  with placement.only_on(pair.local.device):
    own = _parted(elastic_pairs.read(pair.local, seen.rows), seen.sizes)
    owed = [0] * len(own) if pair.feedback is None else (
        _parted(elastic_pairs.read(pair.feedback, seen.rows), seen.sizes))
    differences, centers, sent, kept = zip(*(
        _rounded_part(pair, moving_rate, wire, *part)
        for part in zip(own, seen.sent, owed)))
  return Differences(
      [_joined(differences, pair.local)], _joined(centers, pair.local),
      seen.rows, sent, seen.sizes,
      None if pair.feedback is None else _joined(kept, pair.local))


def _rounded_part(pair, moving_rate, wire, own, sent, owed):
  """d, Q(center), what is sent of e, and the feedback or None."""
  shape = own.shape if own.shape.is_fully_defined() else tf.shape(own)
  center = wire_types.decode(sent, shape, own.dtype)
  difference = elastic.elastic_difference(own, center, moving_rate)
  has_feedback = pair.feedback is not None
  owed = difference + owed if has_feedback else difference
  sent = wire_types.encode(owed, wire.dtype, keeps_zero=True)
  arrives = wire_types.decode(sent, shape, own.dtype)
  if not has_feedback:
    return arrives, center, sent, None
  return difference, center, sent, owed - arrives


def move(pair: elastic_pairs.Pair, differences: Differences,
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
  moves = [elastic_pairs.write(copy, how, difference, rows)
           for copy, difference in zip(pair.copies, differences.of_copies)]
  kept = []
  if pair.local_center is not None:
    kept = [elastic_pairs.write(pair.local_center, 'update', center, rows)]
  if differences.kept is not None:
    moves.append(elastic_pairs.write(
        pair.feedback, 'update', differences.kept, rows))
  # The value of a reference variable may be its buffer: take it over before it
  # changes. Else nothing to wait for, which would be a message of its own.
  first = kept if branching.is_reference(pair.center) else []
  with tf1.control_dependencies(first), placement.only_on(pair.center.device):
    moves += [*kept, elastic_pairs.write(
        pair.center, 'add', _arriving(pair, differences), rows,
        use_locking=use_locking)]
  if pair.touched is not None:
    with tf1.control_dependencies(moves):
      moves = [elastic_pairs.write(
          pair.touched, 'update', tf.zeros_like(pair.touched))]
  return tf.group(*[m for m in moves if m is not None])


def move_nothing(pair: elastic_pairs.Pair) -> list:
  """Returns the ops of a communication that is not made: none but a snapshot's.

  Args:
    pair: The variable.
  """
  return [
      elastic_pairs.write(
          copy, 'update', tf.zeros(copy.shape, copy.dtype.base_dtype))
      for copy in pair.copies if pair.is_snapshot]


def _arriving(pair: elastic_pairs.Pair, differences: Differences) -> tf.Tensor:
  """What the centre gains, computed where it is."""
  if differences.sent is None:
    return tf.add_n(differences.of_copies)
  shape = pair.center.shape
  if differences.rows is not None:
    shape = tf.concat([[tf.size(differences.rows)], shape[1:]], 0)
  shapes = [shape] if differences.sizes is None else (
      [[size] for size in differences.sizes])
  return _joined([
      wire_types.decode(part, each, pair.center.dtype.base_dtype)
      for part, each in zip(differences.sent, shapes)], pair.center)


def _parted(value: tf.Tensor,
            sizes: Optional[Sequence[int]]) -> Sequence[tf.Tensor]:
  """`value` in parts of so many values; of a whole dimension without a copy."""
  return [value] if sizes is None else tf.split(tf.reshape(value, [-1]), sizes)


def _joined(parts: Sequence[tf.Tensor], like: tf.Variable) -> tf.Tensor:
  """What `_parted` has taken apart, where `like` is, and in its shape."""
  if len(parts) == 1:
    return parts[0]
  with placement.only_on(like.device):
    return tf.reshape(tf.concat(parts, 0), like.shape)


def _touched_rows(pair: elastic_pairs.Pair) -> Optional[tf.Tensor]:
  """The ids of the rows to move, or None for the whole variable."""
  if pair.touched is None:
    return None
  with placement.only_on(pair.touched.device):
    return tf.reshape(tf.where(pair.touched.read_value()), [-1])
