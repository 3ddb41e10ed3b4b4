# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reduction of the losses of shards to their sum or mean, by one scale.

  loss = scale * sum over the group's shards of loss[shard]
  scale = 1 / number of shards in the group with MEAN, 1 with SUM

A group assignment is a list of groups, and a group is a list of shard indices:
with `[[0, 1], [2, 3]]`, shards 0 and 1 reduce together, and 2 and 3. All groups
have the same size, and every shard is in exactly one group. None means one
group of all shards.
"""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

SUM = tf.compat.v1.losses.Reduction.SUM
MEAN = tf.compat.v1.losses.Reduction.MEAN

GroupAssignment = Optional[list[list[int]]]


def check(reduction: str) -> None:
  """Raises ValueError unless `reduction`, the user's, is SUM or MEAN."""
  if reduction not in (SUM, MEAN):
    raise ValueError(
        '`reduction` must be `tf.compat.v1.losses.Reduction.MEAN` '
        f'({MEAN!r}) or `SUM` ({SUM!r}). Received: {reduction!r}. Pass MEAN '
        'where the loss of a shard is a mean over its part of the batch.')


def factor(reduction: str, group_size: int, divided_by: int = 1) -> float:
  """Returns the remaining factor of a loss, `scale * divided_by`.

  `divided_by` is the number that the loss is divided by elsewhere.

  Example:
    >>> factor(MEAN, group_size=2), factor(MEAN, group_size=2, divided_by=4)
    (0.5, 2.0)
  """
  return divided_by / (group_size if reduction == MEAN else 1)


def check_groups(group_assignment: GroupAssignment,
                 num_shards: int | None = None) -> None:
  """Raises ValueError unless the groups divide the shards equally.

  `group_assignment` is None, or a list of lists of shard indices. These must be
  a permutation of `range(num_shards)`. If `num_shards` is not known yet, and
  None, they must be a permutation of `range(number of indices)`.

  Example:
    >>> check_groups([[0, 2], [1, 3]], num_shards=4)
    >>> check_groups([[0, 1], [2]])
    Traceback (most recent call last):
    ...
    ValueError: The groups of `group_assignment` must have one size. Received:
    [[0, 1], [2]]. Give every group 1 or more shards, the same number each.
  """
  if group_assignment is None:
    return
  if not _is_list_of_int_lists(group_assignment):
    raise ValueError(
        '`group_assignment` must be a list of lists of integers, or None. '
        f'Received: {group_assignment!r}. Example: [[0, 1], [2, 3]].')
  sizes = {len(group) for group in group_assignment}
  if len(sizes) != 1 or 0 in sizes:
    raise ValueError(
        'The groups of `group_assignment` must have one size. Received: '
        f'{group_assignment!r}. Give every group 1 or more shards, the same '
        'number each.')
  indices = [index for group in group_assignment for index in group]
  wanted = len(indices) if num_shards is None else num_shards
  if sorted(indices) != list(range(wanted)):
    raise ValueError(
        f'`group_assignment` must be a permutation of range({wanted}). '
        f'Received: {group_assignment!r}. Name each of the {wanted} shards '
        'once.')


def group_size(group_assignment: GroupAssignment, num_shards: int) -> int:
  """Returns the number of shards that reduce together.

  Raises ValueError if the groups do not fit `num_shards`.

  Example:
    >>> group_size(None, 4), group_size([[0, 1], [2, 3]], 4)
    (4, 2)
  """
  check_groups(group_assignment, num_shards)
  return num_shards if group_assignment is None else len(group_assignment[0])


def group_of_shard(group_assignment: list[list[int]]) -> list[int]:
  """Returns the index of each shard's group, for a checked assignment.

  Example:
    >>> group_of_shard([[0, 3], [1, 2]])
    [0, 1, 1, 0]
  """
  groups = {shard: index for index, group in enumerate(group_assignment)
            for shard in group}
  return [groups[shard] for shard in range(len(groups))]


def _is_list_of_int_lists(value) -> bool:
  return (isinstance(value, list) and bool(value) and
          all(isinstance(group, list) for group in value) and
          all(isinstance(index, int) and not isinstance(index, bool)
              for group in value for index in group))
