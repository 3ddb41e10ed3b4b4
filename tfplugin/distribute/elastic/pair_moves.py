# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values that an exchange moves between centres and copies, and its messages.

Small variables share one message; see `tfplugin.distribute.packed.packing`.

A large variable is sent in parts, if that is asked for. The difference of one
part returns while the next parts arrive, so both directions of a link are busy.
Without parts, two workers that exchange at the same time both pull, and then
both push, with the other direction idle. But they come apart later. A part is a
separate call also in a step that is not due, which sends no data in it.

Neither packing nor splitting changes a bit of the result.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.packed import packing
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# A variable of more than an eighth of its server's bytes is sent in parts.
# Below this minimum a part's call takes longer than its bytes.
PARTS, MIN_PART_BYTES = 8, 1 << 18


class Wire(NamedTuple):
  """Type of values on the network, one of `wire_types.TYPES`.

  `dither` is for the centre, see `wire_types.encode`.
  """

  dtype: str
  dither: wire_types.Dither = 0.5


class Seen(NamedTuple):
  """A centre's value as it is sent to the worker.

  Attributes:
    sent: The value in parts, encoded in the smaller type if there is one.
    rows: The ids of the rows; None: the whole variable.
    sizes: The values in each part of the flat variable; None: one part, in the
      variable's shape.
  """

  sent: Sequence[tf.Tensor]
  rows: tf.Tensor | None
  sizes: Sequence[int] | None = None


class Differences(NamedTuple):
  """Values that an exchange of one variable is going to move.

  Attributes:
    of_copies: The difference of each copy from the centre, times the rate.
    center: The centre before the exchange, as the worker received it.
    rows: As in `Seen`.
    sent: The parts to send to the centre; None: the sum of `of_copies`.
    sizes: As in `Seen`.
    kept: The new value of the feedback; None without a feedback.
    turn: Whether the worker notes `center` and `kept`; None: it does.
  """

  of_copies: Sequence[tf.Tensor]
  center: tf.Tensor
  rows: tf.Tensor | None
  sent: Sequence[tf.Tensor] | None = None
  sizes: Sequence[int] | None = None
  kept: tf.Tensor | None = None
  turn: tf.Tensor | None = None


def seen_of(pair: elastic_pairs.Pair, wire: Wire | None = None,
            sizes: Sequence[int] | None = None,
            moving_rate: elastic.Rate = 1.0) -> Seen:
  """Returns the centre's value, at the centre's device."""
  rows = _touched_rows(pair, moving_rate)
  with placement.device_override(pair.center.device):
    parts = _parted(elastic_pairs.read(pair.center, rows), sizes)
    if is_rounded(pair, wire):
      parts = [wire_types.encode(part, wire.dtype, wire.dither)
               for part in parts]
  return Seen(parts, rows, sizes)


def differences_of(pair: elastic_pairs.Pair, moving_rate: elastic.Rate,
                   wire: Wire | None, seen: Seen,
                   turn: tf.Tensor | None = None) -> Differences:
  """Returns the differences that an exchange of one variable moves.

    d[i] = moving_rate * (copy[i] - center),  of the values before any moves

  The centre crosses the network once. `wire` is the smaller type on the network
  of a variable with one copy; None keeps the variable's type. `seen` is the
  result of `seen_of`, maybe at the worker. The rate is 0 where `turn` is false.
  """
  if is_rounded(pair, wire):
    return _rounded_differences(pair, moving_rate, wire, seen, turn)
  differences = []
  for copy in pair.copies:
    with placement.device_override(copy.device):
      parts = _parted(elastic_pairs.read(copy, seen.rows), seen.sizes)
      differences.append([
          elastic.elastic_difference(own, center, moving_rate)
          for own, center in zip(parts, seen.sent)])
  return Differences(
      [_joined(parts, copy) for parts, copy in zip(differences, pair.copies)],
      _joined(seen.sent, pair.local), seen.rows,
      None if differences[1:] else differences[0], seen.sizes, turn=turn)


def is_rounded(pair: elastic_pairs.Pair, wire: Wire | None) -> bool:
  """Returns whether `wire` sends this variable in a smaller type."""
  return wire is not None and wire_types.is_smaller(
      wire.dtype, pair.center.dtype)


def _rounded_differences(pair, moving_rate, wire, seen, turn):
  """Returns the differences with Q(v), a value v after encoding and decoding.

    without feedback:  d = Q(moving_rate * (copy - Q(center)))
                       copy -= d;   center += d
    with feedback:     d = moving_rate * (copy - Q(center));  e = d + feedback
                       copy -= d;   center += Q(e);   feedback = e - Q(e)

  In both the sum of copy, centre and feedback is constant.
  """
  with placement.device_override(pair.local.device):
    own = _parted(elastic_pairs.read(pair.local, seen.rows), seen.sizes)
    owed = [0] * len(own) if pair.feedback is None else _parted(
        elastic_pairs.read_if(turn, pair.feedback, seen.rows), seen.sizes)
    differences, centers, sent, kept = zip(*(
        _rounded_part(pair, moving_rate, wire, *part)
        for part in zip(own, seen.sent, owed)))
  return Differences(
      [_joined(differences, pair.local)], _joined(centers, pair.local),
      seen.rows, sent, seen.sizes,
      None if pair.feedback is None else _joined(kept, pair.local), turn)


def _rounded_part(pair, moving_rate, wire, own, sent, owed):
  """Returns d, Q(center), the encoded e, and the feedback or None."""
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
  """Returns the op that exchanges one variable.

    copy[i] -= d[i];   center += sum{i} d[i];   local_center = center before

  A snapshot becomes d. The sum crosses the network once. `use_locking` locks
  the updates of reference variables; a resource variable is always locked.
  """
  rows, center = differences.rows, differences.center
  how = 'update' if pair.is_snapshot else 'sub'
  moves = [elastic_pairs.write(
      copy, how, difference, rows, use_locking=use_locking)
           for copy, difference in zip(pair.copies, differences.of_copies)]
  # A snapshot is of one call: its centre is noted in any case.
  kept = [elastic_pairs.write_if(turn, variable, value, rows)
          for variable, value, turn in (
              (pair.local_center, center,
               None if pair.is_snapshot else differences.turn),
              (pair.feedback, differences.kept, differences.turn))
          if not (variable is None or value is None)]
  # The value of a reference variable may be its buffer: copy it before the
  # buffer changes. A resource variable needs no control dependency, which would
  # be an extra message.
  first = kept if branching.is_reference(pair.center) else []
  with tf1.control_dependencies(first), (
      placement.device_override(pair.center.device)):
    moves += [*kept, elastic_pairs.write(
        pair.center, 'add', _arriving(pair, differences), rows,
        use_locking=use_locking)]
  return tf.group(*[m for m in moves if m is not None])


def move_nothing(pair: elastic_pairs.Pair, differences: Differences) -> list:
  """Returns the ops of a skipped exchange.

  They set snapshots to 0, and note the touched rows again.
  """
  rows = differences.rows
  noted = [] if rows is None else [elastic_pairs.write(
      pair.touched, 'update', tf.ones_like(rows, tf.bool), rows)]
  return [*noted, *(
      elastic_pairs.write(
          copy, 'update', tf.zeros(copy.shape, copy.dtype.base_dtype))
      for copy in pair.copies if pair.is_snapshot)]


def _arriving(pair: elastic_pairs.Pair, differences: Differences) -> tf.Tensor:
  """Returns the sum of differences, computed on the centre's device."""
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
            sizes: Sequence[int] | None) -> Sequence[tf.Tensor]:
  """Returns `value` in parts of `sizes`, without a copy; None: one part."""
  return [value] if sizes is None else tf.split(tf.reshape(value, [-1]), sizes)


def _joined(parts: Sequence[tf.Tensor], like: tf.Variable) -> tf.Tensor:
  """Returns parts made by `_parted` as one tensor in the shape of `like`."""
  if len(parts) == 1:
    return parts[0]
  with placement.device_override(like.device):
    return tf.reshape(tf.concat(parts, 0), like.shape)


def _touched_rows(pair: elastic_pairs.Pair,
                  moving_rate: elastic.Rate) -> tf.Tensor | None:
  """Returns the ids of the rows to exchange; None: the whole variable.

  They are forgotten before they are read: a later change is noted anew. With a
  rate of 0 no row moves.
  """
  if pair.touched is None or pair.is_dense:
    return None
  with placement.device_override(pair.touched.device):
    moves = tf.logical_and(
        pair.touched.read_value(), tf.not_equal(moving_rate, 0))
    rows = tf.reshape(tf.where(moves), [-1])
    with tf1.control_dependencies([elastic_pairs.write(
        pair.touched, 'update', tf.zeros_like(rows, tf.bool), rows)]):
      return tf.identity(rows)


def receive_all(
    pairs: Sequence[elastic_pairs.Pair], moving_rates: Sequence[elastic.Rate],
    wire: Wire | None = None, has_parts: bool = False,
    turns: Sequence[tf.Tensor | None] | None = None,
) -> list[Differences]:
  """Returns `differences_of` for variables that share messages."""
  seen = _all_seen(pairs, moving_rates, wire,
                   _limits(pairs, wire) if has_parts else {})
  arrived = _carried([each.sent for each in seen], [
      _way_to_worker(pair) for pair in pairs])
  return [differences_of(
      pair, rate, wire, each._replace(sent=sent), turn)
          for pair, rate, each, sent, turn in zip(
              pairs, moving_rates, seen, arrived, turns or [None] * len(pairs))]


def send_all(pairs: Sequence[elastic_pairs.Pair],
             differences: Sequence[Differences],
             use_locking: bool = True) -> list[tf.Operation]:
  """Returns the ops of `move` for variables that share messages."""
  arrived = _carried([each.sent for each in differences], [
      _way_to_worker(pair)[::-1] for pair in pairs])
  return [move(pair, each._replace(sent=sent), use_locking)
          for pair, each, sent in zip(pairs, differences, arrived)]


def _all_seen(pairs, moving_rates, wire, limits):
  """Returns `seen_of` for several variables."""
  # The variable that is read last is sent first: TensorFlow runs other ready
  # ops before a send, and none are left after the last read. This holds on a
  # server with one thread. A second thread may send earlier, mostly where
  # values are encoded first. Without these control dependencies the order is
  # arbitrary. Row ids come from the worker: waiting for another variable's rows
  # would add a message.
  result, before, rates = {}, {}, dict(zip(pairs, moving_rates))
  for pair in sorted(pairs, key=_num_elements):
    if pair.touched is not None:
      result[pair] = seen_of(pair, wire, None, rates[pair])
      continue
    with tf1.control_dependencies(before.get(pair.center.device, ())):
      seen = result[pair] = seen_of(
          pair, wire, _part_sizes(pair, wire, limits))
    before[pair.center.device] = seen.sent
  return [result[pair] for pair in pairs]


def _num_elements(pair):
  return pair.center.shape.num_elements() or 0


def _limits(pairs, wire) -> dict[tuple[str, str], int]:
  """Returns the bytes of the largest part, by source and destination."""
  totals = collections.Counter()
  for pair in pairs:
    totals[_way_to_worker(pair)] += _num_bytes(pair, wire)
  return {way: max(MIN_PART_BYTES, -(-total // PARTS))
          for way, total in totals.items() if placement.is_remote(*way)}


def _num_bytes(pair, wire):
  dtype = (wire.dtype if is_rounded(pair, wire) else
           pair.center.dtype)
  return _num_elements(pair) * tf.as_dtype(dtype).size


def _part_sizes(pair, wire, limits) -> list[int] | None:
  """Returns the number of values in each part; None: sent as a whole."""
  size, limit = _num_bytes(pair, wire), limits.get(_way_to_worker(pair))
  if pair.copies[1:] or limit is None or size <= limit:
    return None
  total = _num_elements(pair)
  # Parts of whole blocks, because int8 scales each block separately.
  blocks = -(-total // wire_types.BLOCK)
  most = -(-blocks // -(-size // limit)) * wire_types.BLOCK
  return [min(most, total - begin) for begin in range(0, total, most)]


def _way_to_worker(pair) -> packing.Way:
  return pair.center.device, pair.local.device


def _carried(values: Sequence[Sequence[tf.Tensor] | None],
             ways: Sequence[packing.Way],
             ) -> list[Sequence[tf.Tensor] | None]:
  """Returns `values`, in parts or None, where they go; small ones packed."""
  if not any(placement.is_remote(*way) for way in ways):
    return list(values)
  whole = packing.carried(
      [parts[0] if parts is not None and len(parts) == 1 else None
       for parts in values], ways)
  return [parts if one is None else [one] for parts, one in zip(values, whole)]
