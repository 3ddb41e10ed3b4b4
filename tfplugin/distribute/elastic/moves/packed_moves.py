# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a communication moves of many variables, as messages.

Small variables go in one message. A tensor that goes to another task is a call
of its own, which takes longer than the bytes of a small one. Those of one type
that go the same way are one tensor: concatenated where they are, split where
they arrive.

A large variable goes in parts, if that is asked for. The difference of what has
arrived goes back while the rest follows, so that both directions of a link are
busy. Else two workers that communicate at the same time both pull, and then
both push, with the other direction idle, for as long as they meet. A part is a
call of its own also in a step that is not due, which sends nothing by it.

Of neither any bit changes.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic.moves import pair_moves
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# Larger tensors are sent as they are: to copy them twice takes longer than a
# call. docs/exchange.md has the figures.
MAX_BYTES = 1 << 15
# A variable that is more than an eighth of what its server sends goes in parts,
# but of no less than this, which calls would outweigh.
PARTS, MIN_PART_BYTES = 8, 1 << 18


def differences_of(
    pairs: Sequence[elastic_pairs.Pair], moving_rate: elastic.Rate,
    wire: Optional[pair_moves.Wire] = None, has_parts: bool = False,
) -> list[pair_moves.Differences]:
  """As `pair_moves.differences_of`, for several variables.

  Args:
    pairs: The variables.
    moving_rate: The share of the differences that moves.
    wire: The smaller type on the way; None: their own.
    has_parts: Whether large variables go in parts.
  """
  seen = _seen_of(pairs, wire, _limits(pairs, wire) if has_parts else {})
  arrived = _carried([each.sent for each in seen], [
      _way_to_worker(pair) for pair in pairs])
  return [pair_moves.differences_of(
      pair, moving_rate, wire, each._replace(sent=sent))
          for pair, each, sent in zip(pairs, seen, arrived)]


def move(pairs: Sequence[elastic_pairs.Pair],
         differences: Sequence[pair_moves.Differences],
         use_locking: bool = True) -> list[tf.Operation]:
  """As `pair_moves.move`, for several variables.

  Args:
    pairs: The variables.
    differences: Those of `differences_of`.
    use_locking: As for one.
  """
  arrived = _carried([each.sent for each in differences], [
      _way_to_worker(pair)[::-1] for pair in pairs])
  return [pair_moves.move(pair, each._replace(sent=sent), use_locking)
          for pair, each, sent in zip(pairs, differences, arrived)]


def _seen_of(pairs, wire, limits):
  """As `pair_moves.seen_of`, for several variables."""
  # What is read last is sent first: TensorFlow puts a send behind what else can
  # run then, and there is nothing else after the last. So it is on a server of
  # one thread; another thread may be there sooner, mostly where values are made
  # smaller first. Without an order each graph has one by chance. Rows come from
  # the worker: to wait for those of another variable would be a way of its own.
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
  """The bytes of the largest part, of each way."""
  totals = collections.Counter()
  for pair in pairs:
    totals[_way_to_worker(pair)] += _num_bytes(pair, wire)
  return {way: max(MIN_PART_BYTES, -(-total // PARTS))
          for way, total in totals.items() if _is_remote(*way)}


def _num_bytes(pair, wire):
  dtype = (wire.dtype if pair_moves.is_rounded(pair, wire) else
           pair.center.dtype)
  return _num_elements(pair) * tf.as_dtype(dtype).size


def _part_sizes(pair, wire, limits) -> Optional[list[int]]:
  """The values of each part of a variable; None: it goes as it is."""
  size, limit = _num_bytes(pair, wire), limits.get(_way_to_worker(pair))
  if pair.copies[1:] or limit is None or size <= limit:
    return None
  total = _num_elements(pair)
  # Of whole blocks, which int8 rounds by themselves.
  blocks = -(-total // wire_types.BLOCK)
  most = -(-blocks // -(-size // limit)) * wire_types.BLOCK
  return [min(most, total - begin) for begin in range(0, total, most)]


def _way_to_worker(pair) -> tuple[str, str]:
  return pair.center.device, pair.local.device


def _carried(values: Sequence[Optional[Sequence[tf.Tensor]]],
             ways: Sequence[tuple[str, str]],
             ) -> list[Optional[Sequence[tf.Tensor]]]:
  """Returns `values` as they arrive, packed or as they are.

  Args:
    values: What is sent, in parts; None for nothing that goes by this.
    ways: Of each the device where it is, and the one where it is going.
  """
  result, packs = list(values), {}
  for index, (parts, way) in enumerate(zip(values, ways)):
    if parts is not None and len(parts) == 1 and _is_packable(
        parts[0]) and _is_remote(*way):
      packs.setdefault((parts[0].dtype, *way), []).append(index)
  for (_, source, destination), pack in packs.items():
    if len(pack) > 1:
      parts = _packed([values[index][0] for index in pack], source, destination)
      for index, part in zip(pack, parts):
        result[index] = [part]
  return result


def _packed(values, source, destination):
  with placement.only_on(source):
    sent = tf.concat([tf.reshape(value, [-1]) for value in values], 0)
  with placement.only_on(destination):
    parts = tf.split(sent, [value.shape.num_elements() for value in values])
    return [tf.reshape(part, value.shape)
            for part, value in zip(parts, values)]


def _is_packable(value):
  """Whether its size is known, and small."""
  return value.shape.is_fully_defined() and (
      value.shape.num_elements() * value.dtype.size <= MAX_BYTES)


def _is_remote(source, destination):
  """Whether two devices are of different tasks."""
  return _task_of(source) != _task_of(destination)


def _task_of(device):
  spec = tf.DeviceSpec.from_string(device)
  return spec.job, spec.task
