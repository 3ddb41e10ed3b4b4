# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a communication moves of many variables: small ones in one message.

Of large ones the largest is to leave a server first. Its difference goes back
while the others follow, so that workers that meet on a link come apart.

A tensor that goes to another task is a call of its own, which takes longer than
the bytes of a small one. Those of one type that go the same way are one tensor:
concatenated where they are, split where they arrive, of which no bit changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.ops import elastic

tf1 = tf.compat.v1

# Larger tensors are sent as they are: to copy them twice takes longer than a
# call. docs/exchange.md has the figures.
MAX_BYTES = 1 << 15


def differences_of(
    pairs: Sequence[elastic_pairs.Pair], moving_rate: elastic.Rate,
    wire: Optional[elastic_pairs.Wire] = None,
) -> list[elastic_pairs.Differences]:
  """As `elastic_pairs.differences_of`, for several variables.

  Args:
    pairs: The variables.
    moving_rate: The share of the differences that moves.
    wire: The smaller type on the way; None: their own.
  """
  seen = _seen_of(pairs, wire)
  arrived = _carried([each.sent for each in seen], [
      (pair.center.device, pair.local.device) for pair in pairs])
  return [elastic_pairs.differences_of(
      pair, moving_rate, wire, each._replace(sent=sent))
          for pair, each, sent in zip(pairs, seen, arrived)]


def move(pairs: Sequence[elastic_pairs.Pair],
         differences: Sequence[elastic_pairs.Differences],
         use_locking: bool = True) -> list[tf.Operation]:
  """As `elastic_pairs.move`, for several variables.

  Args:
    pairs: The variables.
    differences: Those of `differences_of`.
    use_locking: As for one.
  """
  arrived = _carried([each.sent for each in differences], [
      (pair.local.device, pair.center.device) for pair in pairs])
  return [elastic_pairs.move(pair, each._replace(sent=sent), use_locking)
          for pair, each, sent in zip(pairs, differences, arrived)]


def _seen_of(pairs, wire):
  """As `elastic_pairs.seen_of`, for several variables."""
  # What is read last is sent first: TensorFlow puts a send behind what else can
  # run then, and there is nothing else after the last. So it is on a server of
  # one thread; another thread may be there sooner, mostly where values are made
  # smaller first. Without an order each graph has one by chance. Rows come from
  # the worker: to wait for those of another variable would be a way of its own.
  result, before = {}, {}
  for pair in sorted(pairs, key=_num_elements):
    if pair.touched is not None:
      result[pair] = elastic_pairs.seen_of(pair, wire)
      continue
    with tf1.control_dependencies(before.get(pair.center.device, ())):
      seen = result[pair] = elastic_pairs.seen_of(pair, wire)
    before[pair.center.device] = [seen.sent]
  return [result[pair] for pair in pairs]


def _num_elements(pair):
  return pair.center.shape.num_elements() or 0


def _carried(values: Sequence[Optional[tf.Tensor]],
             ways: Sequence[tuple[str, str]]) -> list[Optional[tf.Tensor]]:
  """Returns `values` as they arrive, packed or as they are.

  Args:
    values: What is sent; None for nothing that goes by this.
    ways: Of each the device where it is, and the one where it is going.
  """
  result, packs = list(values), {}
  for index, (value, way) in enumerate(zip(values, ways)):
    if value is not None and _is_packable(value) and _is_remote(*way):
      packs.setdefault((value.dtype, *way), []).append(index)
  for (_, source, destination), pack in packs.items():
    if len(pack) > 1:
      parts = _packed([values[index] for index in pack], source, destination)
      for index, part in zip(pack, parts):
        result[index] = part
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
