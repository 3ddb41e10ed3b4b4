# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Messages of one exchange of many variables.

Small variables share one message; see `tfplugin.distribute.packed.packing`.

A large variable is sent in parts, if that is asked for. The difference of one
part returns while the next parts arrive, so both directions of a link are busy.
Without parts, two workers that exchange at the same time both pull, and then
both push, with the other direction idle. A part is a separate call also in a
step that is not due, which sends no data in it.

Neither packing nor splitting changes a bit of the result.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import pair_moves
from tfplugin.distribute.packed import packing
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# A variable of more than an eighth of its server's bytes is sent in parts.
# Below this minimum a part's call takes longer than its bytes.
PARTS, MIN_PART_BYTES = 8, 1 << 18


def receive_all(
    pairs: Sequence[elastic_pairs.Pair], moving_rate: elastic.Rate,
    wire: Optional[pair_moves.Wire] = None, has_parts: bool = False,
) -> list[pair_moves.Differences]:
  """Returns `pair_moves.differences_of` for variables that share messages."""
  seen = _seen_of(pairs, wire, _limits(pairs, wire) if has_parts else {})
  arrived = _carried([each.sent for each in seen], [
      _way_to_worker(pair) for pair in pairs])
  return [pair_moves.differences_of(
      pair, moving_rate, wire, each._replace(sent=sent))
          for pair, each, sent in zip(pairs, seen, arrived)]


def send_all(pairs: Sequence[elastic_pairs.Pair],
             differences: Sequence[pair_moves.Differences],
             use_locking: bool = True) -> list[tf.Operation]:
  """Returns the ops of `pair_moves.move` for variables that share messages."""
  arrived = _carried([each.sent for each in differences], [
      _way_to_worker(pair)[::-1] for pair in pairs])
  return [pair_moves.move(pair, each._replace(sent=sent), use_locking)
          for pair, each, sent in zip(pairs, differences, arrived)]


def _seen_of(pairs, wire, limits):
  """Returns `pair_moves.seen_of` for several variables."""
  # The variable that is read last is sent first: TensorFlow runs other ready
  # ops before a send, and none are left after the last read. This holds on a
  # server with one thread. A second thread may send earlier, mostly where
  # values are encoded first. Without these control dependencies the order is
  # arbitrary. Row ids come from the worker: waiting for another variable's rows
  # would add a message.
  result, before = {}, {}
  for pair in sorted(pairs, key=_num_elements):
    if pair.touched is not None:
      result[pair] = pair_moves.seen_of(pair, wire)
      continue
    with tf1.control_dependencies(before.get(pair.center.device, ())):
      seen = result[pair] = pair_moves.seen_of(
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
          for way, total in totals.items() if packing.is_remote(*way)}


def _num_bytes(pair, wire):
  dtype = (wire.dtype if pair_moves.is_rounded(pair, wire) else
           pair.center.dtype)
  return _num_elements(pair) * tf.as_dtype(dtype).size


def _part_sizes(pair, wire, limits) -> Optional[list[int]]:
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


def _carried(values: Sequence[Optional[Sequence[tf.Tensor]]],
             ways: Sequence[packing.Way],
             ) -> list[Optional[Sequence[tf.Tensor]]]:
  """Returns `values`, in parts or None, where they go; small ones packed."""
  whole = packing.carried(
      [parts[0] if parts is not None and len(parts) == 1 else None
       for parts in values], ways)
  return [parts if one is None else [one] for parts, one in zip(values, whole)]
