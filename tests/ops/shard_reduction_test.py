# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the reductions over shards."""

import pytest
import tensorflow as tf

from tfplugin.ops import shard_reduction

_Reduction = tf.compat.v1.losses.Reduction


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
