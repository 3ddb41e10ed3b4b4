# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Split of a batch into shards, and the rows of a batch for towers."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

Rows = batch_parts.Rows

_REMEDY = 'Name in `broadcast` the tensors that are not split.'


@dataclasses.dataclass(frozen=True)
class Shards:
  """A batch, split into one structure of features and labels per shard.

  `rows` is the number of rows of each shard: ints where the size of the batch
  is static, else scalar int64 tensors. The numbers differ by at most one,
  larger ones come first, and they may be 0. Without labels, `labels` has None
  for each shard.
  """

  features: Sequence[Any]
  labels: Sequence[Any]
  rows: Sequence[Rows]

  def check_even(self, owner: str) -> list[tf.Operation]:
    """Raises ValueError unless all shards have equally many rows, at least one.

    The mean over the shards is then the mean over the batch. The result is
    assertions to run with the step, for sizes that are not static. `owner` is
    the name, for the message, of the object that splits the batch.
    """
    rows = self.rows
    rule = f'A batch must be a multiple of the {len(rows)} shards of `{owner}`.'
    if not all(isinstance(count, int) for count in rows):
      return [tf1.debugging.assert_equal(rows[0], rows[-1], message=rule)]
    if not rows[-1] or len(set(rows)) > 1:
      raise ValueError(
          f'{rule} Received: {sum(rows)} rows. Batch with '
          '`drop_remainder=True`, or use `tfplugin.replicate_model_fn`, which '
          'weights shards by their rows.')
    return []


def batch_of_towers(features: Any, labels: Any, num_towers: int,
                    broadcast: Collection[str] = (),
                    ) -> batch_parts.DividedBatch:
  """Returns the batch with each leaf that has rows as a tensor."""
  values = _map(lambda leaf: leaf, (features, labels), broadcast)
  leaves = _rows_leaves(*values, broadcast)
  dense = [leaf for leaf in leaves if tf.is_symbolic_tensor(leaf)]
  composites = [leaf for leaf in leaves if isinstance(
      leaf, batch_parts.COMPOSITES)]

  def divide() -> batch_parts.Bounds:
    rows, checks = _num_rows(_of_known_rank([*dense, *composites]))
    return (*_bounds(rows, num_towers), checks)

  return batch_parts.DividedBatch(
      values, dense, composites, batch_parts.static_rows(leaves, _REMEDY),
      divide)


def check_broadcast(broadcast: Iterable[str]) -> tuple[str, ...]:
  """Returns the user's keys, read once; raises TypeError for one string."""
  if isinstance(broadcast, str):
    raise TypeError('`broadcast` must be a list of keys. '
                    f'Received: {broadcast!r}. Pass [{broadcast!r}].')
  return tuple(broadcast)


def split_batch(features: Any, labels: Any, num_shards: int,
                broadcast: Collection[str] = ()) -> Shards:
  """Splits a batch along the first dimension, in order, as evenly as possible.

  Features and labels are any nest of `[batch, ...]` tensors, dense, sparse or
  ragged; labels may be None. Scalars go to every shard as they are, and so do
  the values of the keys in `broadcast`. Raises ValueError if no tensor has
  rows, if numbers of rows differ, or if a key is missing.
  """
  leaves = _rows_leaves(features, labels, broadcast)
  if num_shards == 1:
    rows, _ = _num_rows(_of_known_rank(leaves))
    return Shards([features], [labels], [rows])
  rows, checks = _num_rows(leaves)
  begins, sizes = _bounds(rows, num_shards)
  with tf.control_dependencies(checks):
    shards = [
        _map(lambda leaf, begin=begin, size=size: _slice(leaf, begin, size),
             (features, labels), broadcast)
        for begin, size in zip(begins, sizes)]
  return Shards(*map(list, zip(*shards)), sizes)


def _rows_leaves(features: Any, labels: Any,
                 broadcast: Collection[str]) -> list[Any]:
  """Returns the leaves of a batch that have its rows."""
  _check_keys((features, labels), broadcast)
  leaves = []
  _map(leaves.append, (features, labels), broadcast)
  if not leaves:
    raise ValueError(
        'A batch must have a first dimension, along which it is split. '
        f'Received: features={features!r}, labels={labels!r}, all of rank 0. '
        'Batch the input, or name fewer keys in `broadcast`.')
  return leaves


def _bounds(rows: Rows, num_shards: int) -> tuple[list[Rows], list[Rows]]:
  """Returns where each shard begins and how many rows it has."""
  base, extra = rows // num_shards, rows % num_shards
  if isinstance(rows, int):
    sizes = [base + (i < extra) for i in range(num_shards)]
    begins = [i * base + min(i, extra) for i in range(num_shards)]
  else:
    sizes = [base + tf.cast(i < extra, tf.int64) for i in range(num_shards)]
    begins = [i * base + tf.minimum(tf.cast(i, tf.int64), extra)
              for i in range(num_shards)]
  return begins, sizes


def _of_known_rank(leaves: Sequence[Any]) -> Sequence[Any]:
  """Returns the leaves that surely have rows, or all if no rank is known."""
  return [leaf for leaf in leaves if leaf.shape.rank is not None] or leaves


def _num_rows(leaves: Sequence[Any]) -> tuple[Rows, list[tf.Operation]]:
  """Returns the number of rows, and assertions that all `leaves` have it.

  A number that is not static waits for the assertions itself.
  """
  rows = batch_parts.static_rows(leaves, _REMEDY)
  counts = [batch_parts.num_rows(leaf) for leaf in leaves
            if leaf.shape.rank is None or
            tf.compat.dimension_value(leaf.shape[0]) is None]
  checks = [
      tf1.debugging.assert_equal(
          count, counts[0] if rows is None else tf.constant(rows, tf.int64),
          message='Every tensor of a batch must have the same first dimension. '
          f'{_REMEDY}')
      for count in counts[rows is None:]]
  if rows is not None:
    return rows, checks
  with tf.control_dependencies(checks):
    return tf.identity(counts[0]), []


def _slice(leaf: Any, begin: Rows, size: Rows) -> Any:
  if not isinstance(leaf, tf.SparseTensor):
    return leaf[begin:begin + size]
  rest = tf.cast(leaf.dense_shape[1:], tf.int64)
  start = tf.concat([[tf.cast(begin, tf.int64)], tf.zeros_like(rest)], 0)
  sizes = tf.concat([[tf.cast(size, tf.int64)], rest], 0)
  sliced = tf.sparse.slice(leaf, start, sizes)
  sliced.indices.set_shape([None, leaf.shape.rank])
  return sliced


def _map(fn, structure: Any, broadcast: Collection[str]) -> Any:
  """Applies `fn` to each leaf that is split, and keeps the others."""
  flat = tf.nest.flatten(_mark(structure, broadcast))
  mapped = [leaf.value if isinstance(leaf, _Whole) else
            _map_leaf(fn, leaf) for leaf in flat]
  return tf.nest.pack_sequence_as(_mark(structure, ()), mapped)


def _map_leaf(fn, leaf: Any) -> Any:
  if leaf is None:
    return None
  if not isinstance(leaf, batch_parts.COMPOSITES):
    leaf = tf.convert_to_tensor(leaf)
  return leaf if leaf.shape.rank == 0 else fn(leaf)


@dataclasses.dataclass(frozen=True, eq=False)
class _Whole:
  value: Any


def _mark(structure: Any, broadcast: Collection[str]) -> Any:
  """Returns `structure` with each leaf below a key of `broadcast` wrapped."""
  if isinstance(structure, Mapping):
    # Not every class of a mapping can be made like another object of it.
    is_ordered = isinstance(structure, collections.OrderedDict)
    return (collections.OrderedDict if is_ordered else dict)({
        key: tf.nest.map_structure(_Whole, value) if key in broadcast
        else _mark(value, broadcast)
        for key, value in structure.items()})
  if isinstance(structure, (list, tuple)):
    items = [_mark(value, broadcast) for value in structure]
    return (type(structure)(*items) if hasattr(structure, '_fields')
            else type(structure)(items))
  return structure


def _check_keys(structure: Any, broadcast: Collection[str]) -> None:
  missing = set(broadcast) - _keys(structure)
  if missing:
    raise ValueError(
        '`broadcast` must name keys of the features or labels. Received: '
        f'{sorted(missing)}; the keys are {sorted(_keys(structure))}.')


def _keys(structure: Any) -> set[str]:
  keys = set()
  if isinstance(structure, Mapping):
    keys |= set(structure)
    structure = list(structure.values())
  if isinstance(structure, (list, tuple)):
    keys = keys.union(*(_keys(value) for value in structure))
  return keys
