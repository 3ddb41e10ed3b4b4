# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the reductions over shards, and of their groups."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import shard_reduction

_Reduction = tf.compat.v1.losses.Reduction
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


@pytest.mark.parametrize('reduction', ['weighted_sum', 'weighted_mean'])
def test_sum_and_mean_are_fine(reduction):
  shard_reduction.check(reduction)


@pytest.mark.parametrize('reduction', [
    None, 'mean', 'sum', _Reduction.NONE, _Reduction.SUM_BY_NONZERO_WEIGHTS])
def test_others_are_refused(reduction):
  with pytest.raises(ValueError, match=f'`reduction`.*Received: {reduction!r}'):
    shard_reduction.check(reduction)


@pytest.mark.parametrize('reduction, divided_by, expected', [
    # Of 6 shards in groups of 3: 1 / 3 and 1; divided by 6 already, 6 times it.
    (_Reduction.MEAN, 1, 1 / 3), (_Reduction.SUM, 1, 1),
    (_Reduction.MEAN, 6, 2), (_Reduction.SUM, 6, 6)])
def test_factor(reduction, divided_by, expected):
  assert shard_reduction.factor(reduction, 3, divided_by) == expected


@pytest.mark.parametrize('rule, value, num_shards', _BAD)
def test_check_bad_groups_raises_with_rule_and_value(rule, value, num_shards):
  with pytest.raises(ValueError, match=rule) as error:
    shard_reduction.check_groups(value, num_shards)
  assert f'Received: {value!r}' in str(error.value)


@pytest.mark.parametrize('value, num_shards', [
    (None, None), (None, 3), ([[0]], 1), ([[0], [1]], 2), ([[0, 1]], None),
    ([[3, 1], [0, 2]], 4),
])
def test_check_good_groups_passes(value, num_shards):
  shard_reduction.check_groups(value, num_shards)


def test_group_size():
  assert shard_reduction.group_size(None, 6) == 6
  assert shard_reduction.group_size([[0, 1, 2], [3, 4, 5]], 6) == 3
  with pytest.raises(ValueError, match=r'permutation of range\(6\)'):
    shard_reduction.group_size([[0, 1]], 6)


def test_group_of_shard_inverts_the_assignment():
  assert shard_reduction.group_of_shard([[2, 0], [3, 1]]) == [0, 1, 0, 1]
