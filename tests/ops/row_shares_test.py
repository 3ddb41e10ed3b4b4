# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the shares of a batch."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import row_shares


@pytest.mark.parametrize('rows, expected', (
    ([3, 1], [.75, .25]), ([2, 0], [1., 0.]), ([0, 0], [1., 0.]), ([5], [1.])))
def test_shares(rows, expected):
  assert row_shares.row_shares(rows) == expected
  tensors = row_shares.row_shares([tf.constant(count) for count in rows])
  np.testing.assert_allclose(tensors, expected)
