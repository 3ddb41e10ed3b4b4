# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the allowed limits of a wait."""

import numpy as np
import pytest

from tfplugin.distribute import time_limit


@pytest.mark.parametrize('limit', [1, 0.1, np.float32(3), np.int64(3)])
def test_a_number_of_seconds(limit):
  time_limit.check(limit)


@pytest.mark.parametrize('limit', [0, -1.0, float('nan'), float('inf')])
def test_out_of_range(limit):
  with pytest.raises(ValueError, match=(
      f'`time_limit_secs` must be positive and finite.*Received: {limit}')):
    time_limit.check(limit)


@pytest.mark.parametrize('limit', [None, '3', True])
def test_no_number(limit):
  with pytest.raises(TypeError, match='`time_limit_secs` must be a number'):
    time_limit.check(limit)
