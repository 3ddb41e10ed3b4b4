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
from typing import Union

import tensorflow as tf

from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

Rows = Union[int, tf.Tensor]


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

  def shares(self) -> list[float | tf.Tensor]:
    """Returns each shard's share of the rows; they sum to 1.

    A batch without any row belongs to the first shard.
    """
    return batch_parts.row_shares(self.rows)

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


@dataclasses.dataclass(frozen=True)
class BatchRows:
  """The tensors of a batch that have its rows.

  `composites` are sparse or ragged. `num_rows` is None if it is not static.
  """

  dense: Sequence[tf.Tensor]
  composites: Sequence[Any]
  num_rows: int | None

  def divided(self, num_shards: int) -> tuple[
      Sequence[Rows], Sequence[Rows], Sequence[tf.Operation]]:
    """Returns where each shard begins, and its rows.

    Slices must wait for the third result, assertions about the batch.
    """
    rows, checks = _num_rows(_of_known_rank([*self.dense, *self.composites]))
    return (*_bounds(rows, num_shards), checks)


def rows_of_batch(features: Any, labels: Any,
                  broadcast: Collection[str] = ()) -> BatchRows:
  """Returns the tensors of a batch that `split_batch` would split."""
  leaves = _rows_leaves(features, labels, broadcast)
  composites = [leaf for leaf in leaves if isinstance(
      leaf, (tf.SparseTensor, tf.RaggedTensor))]
  return BatchRows([leaf for leaf in leaves if tf.is_symbolic_tensor(leaf)],
                   composites, _static_rows(leaves))


def as_tensors(features: Any, labels: Any,
               broadcast: Collection[str] = ()) -> tuple[Any, Any]:
  """Returns the batch with each leaf that has rows as a tensor."""
  return _map(lambda leaf: leaf, (features, labels), broadcast)


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


def _static_rows(leaves: Sequence[Any]) -> int | None:
  """Returns the number of rows that all `leaves` have, where it is static."""
  static = {tf.compat.dimension_value(leaf.shape[0]) for leaf in leaves
            if leaf.shape.rank is not None} - {None}
  if len(static) > 1:
    raise ValueError('Every tensor of a batch must have the same first '
                     f'dimension. Received: {sorted(static)} in {leaves}. Name '
                     'in `broadcast` the tensors that are not split.')
  return static.pop() if static else None


def _of_known_rank(leaves: Sequence[Any]) -> Sequence[Any]:
  """Returns the leaves that surely have rows, or all if no rank is known."""
  return [leaf for leaf in leaves if leaf.shape.rank is not None] or leaves


def _num_rows(leaves: Sequence[Any]) -> tuple[Rows, list[tf.Operation]]:
  """Returns the number of rows, and assertions that all `leaves` have it.

  A number that is not static waits for the assertions itself.
  """
  rows = _static_rows(leaves)
  counts = [batch_parts.num_rows(leaf) for leaf in leaves
            if leaf.shape.rank is None or
            tf.compat.dimension_value(leaf.shape[0]) is None]
  checks = [
      tf1.debugging.assert_equal(
          count, counts[0] if rows is None else tf.constant(rows, tf.int64),
          message='Every tensor of a batch must have the same first dimension. '
          'Name in `broadcast` the tensors that are not split.')
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
  if not isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor)):
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
