# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums over processes: gradients in a smaller type, values of one type each."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# The largest part of a gradient, of the parts of a turn, and the number of
# turns at a time: measured on a link of 1 Gbit/s.
_PART_BYTES, _TURN_BYTES, _AT_A_TIME = 1 << 20, 5 << 18, 2


class ClusterSums:
  """Mixin before `GroupReduction`, for the engines of several processes."""

  def _sum_over_all(self, value_destination_pairs, options):
    """Sums gradients, the larger ones in `exchange_dtype`."""
    dtype = self._container_strategy().exchange_dtype
    if dtype is None:
      return super()._sum_over_all(value_destination_pairs, options)
    values = [self._local_results(value) for value, _ in
              value_destination_pairs]
    types = [value[0].dtype for value in values]
    are_smaller = [own.is_floating and wire_types.is_smaller(dtype, own)
                   for own in types]
    if not any(are_smaller):
      raise ValueError(
          '`exchange_dtype` must be smaller than the type of a gradient. '
          f'Received: {dtype!r} with gradients of '
          f'{", ".join(sorted({own.name for own in types}))}. Leave it out.')
    totals = super()._sum_over_all([
        (self._per_device(
            lambda x: wire_types.encode_summand(x, dtype), each)
         if is_smaller else value, destination)
        for (value, destination), each, is_smaller
        in zip(value_destination_pairs, values, are_smaller)], options)
    return [self._per_device(
        lambda x, own=own: wire_types.decode_sum(x, dtype, own),
        self._local_results(total)) if is_smaller else total
            for total, own, is_smaller in zip(totals, types, are_smaller)]

  def _are_totals(self, value: Any) -> bool:
    are_totals = super()._are_totals(value)
    dtype = self._container_strategy().exchange_dtype
    if are_totals and dtype is not None:
      tf1.logging.log_first_n(
          tf1.logging.WARN,
          '`exchange_dtype` must be None for gradients that '
          '`tfplugin.cross_replica_sum` sums: it sums in their own type. '
          'Received: %r. Leave one of them out.', 1, dtype)
    return are_totals

  def _reduce_over_all(self, reduce_op, value_destination_pairs, options):
    """Reduces the values of each type by themselves: a pack has one type."""
    sent_dtype = self._container_strategy().exchange_dtype
    kinds = {}
    for index, (value, _) in enumerate(value_destination_pairs):
      x = self._local_results(value)[0]
      dtype = getattr(x, 'dtype', None)
      is_sent = sent_dtype is not None and dtype == sent_dtype and (
          not isinstance(x, tf.IndexedSlices) and x.shape.is_fully_defined())
      kinds.setdefault((dtype, is_sent), []).append(index)
    reduced = {}
    for (_, is_sent), indices in kinds.items():
      reduce = self._reduce_in_turn if is_sent else super()._reduce_over_all
      reduced.update(zip(indices, reduce(
          reduce_op, [value_destination_pairs[i] for i in indices], options)))
    return [reduced[index] for index in range(len(reduced))]

  def _reduce_in_turn(self, reduce_op, value_destination_pairs, options):
    """Reduces parts of all values, two at a time.

    Parts that begin together share the link and end together. Then no part is
    sent while the received ones are added.
    """
    results, ends = [[] for _ in value_destination_pairs], []
    for turn in self._turns(value_destination_pairs):
      after = ends[-_AT_A_TIME] if len(ends) >= _AT_A_TIME else ()
      reduced = super()._reduce_over_all(reduce_op, [
          (self._per_device(functools.partial(_identity, after),
                            self._local_results(part)),
           value_destination_pairs[index][1]) for index, part in turn], options)
      ends.append(self._local_results(reduced[-1]))
      for (index, _), result in zip(turn, reduced):
        results[index].append(self._local_results(result))
    return [
        self._per_device(functools.partial(
            _joined, self._local_results(value)[0].shape), *parts)
        for (value, _), parts in zip(value_destination_pairs, results)]

  def _turns(self, value_destination_pairs) -> list[list[tuple[int, Any]]]:
    """Returns parts with the indices of their values, the last value first."""
    turns, size = [[]], 0
    for index, (value, _) in reversed([*enumerate(value_destination_pairs)]):
      values = self._local_results(value)
      whole = values[0].shape.num_elements() * values[0].dtype.size
      count = max(1, -(-whole // _PART_BYTES))
      for part in self._per_device(functools.partial(_split, count), values):
        if turns[-1] and size + whole / count > _TURN_BYTES:
          turns.append([])
          size = 0
        turns[-1].append((index, part))
        size += whole / count
    return turns


def _split(count: int, x: tf.Tensor) -> list[tf.Tensor]:
  size = x.shape.num_elements()
  ends = [size * part // count for part in range(count + 1)]
  return tf.split(tf.reshape(x, [-1]), np.diff(ends))


def _joined(shape: tf.TensorShape, *parts: tf.Tensor) -> tf.Tensor:
  return tf.reshape(tf.concat(parts, axis=0), shape)


def _identity(after: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  with tf.control_dependencies(after):
    return tf.identity(x)
