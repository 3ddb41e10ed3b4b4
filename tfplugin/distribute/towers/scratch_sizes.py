# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the batches of a scratch graph, and the rows that they show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tfplugin import _tf_internals

# Primes, so that no other size of a model is a multiple of them.
WHOLE_ROWS, _PART_ROWS, _OTHER_PART_ROWS = 20011, 10007, 10009
# Of the dimensions behind the rows: two of a tensor are not taken for equal.
_UNKNOWN = (23, 29, 31, 37, 41, 43, 47)


def part_rows(num_rows: int) -> int:
  """Returns the number of rows of a part: never that of the whole batch."""
  return _OTHER_PART_ROWS if num_rows == _PART_ROWS else _PART_ROWS


def behind_rows(sizes: Sequence[Optional[int]]) -> list[int]:
  """Returns the sizes of a tensor behind its rows, each one known."""
  return [_UNKNOWN[i % len(_UNKNOWN)] if size is None else size
          for i, size in enumerate(sizes[1:])]


def rows_between(whole: Any, part: Any, num_rows: int,
                 ) -> Optional[_tf_internals.Rows]:
  """Returns the place of the rows in two shapes of a tensor, or None.

  `whole` has `num_rows` rows, and `part` as many as a part has.
  """
  if whole.rank is None or whole.rank != part.rank:
    return None
  whole, part = whole.as_list(), part.as_list()
  axes = [i for i, sizes in enumerate(zip(whole, part)) if len(set(sizes)) > 1]
  if len(axes) != 1 or None in (whole[axes[0]], part[axes[0]]):
    return None
  axis = axes[0]
  factor, rest = divmod(part[axis], part_rows(num_rows))
  if rest or not factor or whole[axis] != factor * num_rows:
    return None
  return place_of(whole, axis, factor)


def place_of(sizes: Sequence[Optional[int]], axis: int,
             factor: int) -> _tf_internals.Rows:
  """Returns the place of rows that have `factor` entries of a dimension."""
  return _tf_internals.Rows(
      axis, factor, len(sizes), _product(sizes[:axis]),
      _product([factor, *sizes[axis + 1:]]))


def _product(sizes: Sequence[Optional[int]]) -> Optional[int]:
  return None if None in sizes else math.prod(sizes)
