# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.distribute.shards.group_assignment."""

import numpy as np
import pytest

from tfplugin.distribute.shards import group_assignment

_BAD = (
    ('list of lists', [0, 1], None),
    ('list of lists', 'ab', None),
    ('list of lists', ((0, 1),), None),
    ('list of lists', [(0, 1)], None),
    ('list of lists', np.array([[0, 1]]), None),
    ('list of lists', [[0, 1.0]], None),
    ('list of lists', [[0, True]], None),
    ('list of lists', [], None),
    ('one size', [[0, 1], [2]], None),
    ('one size', [[]], None),
    (r'range\(4\)', [[0, 1], [1, 2]], None),
    (r'range\(4\)', [[0, 1], [2, 4]], None),
    (r'range\(2\)', [[-1, 0]], None),
    (r'range\(8\)', [[0, 1], [2, 3]], 8),
    (r'range\(1\)', [[0, 1]], 1),
)


@pytest.mark.parametrize('rule, value, num_shards', _BAD)
def test_check_bad_groups_raises_with_rule_and_value(rule, value, num_shards):
  with pytest.raises(ValueError, match=rule) as error:
    group_assignment.check(value, num_shards)
  assert f'Received: {value!r}' in str(error.value)


@pytest.mark.parametrize('value, num_shards', [
    (None, None), (None, 3), ([[0]], 1), ([[0], [1]], 2), ([[0, 1]], None),
    ([[3, 1], [0, 2]], 4),
])
def test_check_good_groups_passes(value, num_shards):
  group_assignment.check(value, num_shards)


def test_group_size():
  assert group_assignment.group_size(None, 6) == 6
  assert group_assignment.group_size([[0, 1, 2], [3, 4, 5]], 6) == 3
  with pytest.raises(ValueError, match=r'permutation of range\(6\)'):
    group_assignment.group_size([[0, 1]], 6)


def test_group_of_shard_inverts_the_assignment():
  assert group_assignment.group_of_shard([[2, 0], [3, 1]]) == [0, 1, 0, 1]
