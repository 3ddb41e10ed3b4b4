# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the limits of a wait."""

import numpy as np
import pytest

from tfplugin.distribute import time_limit


@pytest.mark.parametrize('limit', [1, 0.1, np.float32(3), np.int64(3)])
def test_a_number_of_seconds(limit):
  assert time_limit.check('a_secs', limit) == limit


@pytest.mark.parametrize('limit', [0, -1.0, float('nan'), float('inf')])
def test_out_of_range(limit):
  with pytest.raises(ValueError, match=(
      f'`a_secs` must be positive and finite. Received: {limit}. Pass e.g. '
      '60.0.$')):
    time_limit.check('a_secs', limit)


@pytest.mark.parametrize('limit', [None, '3', True])
def test_no_number(limit):
  with pytest.raises(TypeError, match='`a_secs` must be a number'):
    time_limit.check('a_secs', limit)


def test_a_limit_that_may_be_none():
  assert time_limit.check('a_secs', None, or_none=True) is None
  with pytest.raises(ValueError, match='Pass e.g. 60.0, or None.'):
    time_limit.check('a_secs', 0, or_none=True)


def test_a_wait_says_now_and_then_for_whom_and_has_a_limit(monkeypatch, caplog):
  now = [0.0]
  monkeypatch.setattr(time_limit.time, 'monotonic', lambda: now[0])
  patience = time_limit.Patience('worker:0', 60.0)
  for now[0] in (10.0, 30.0, 40.0, 55.0):
    patience.check('ps:0', 'Look.')
  assert [record.getMessage() for record in caplog.records] == [
      'worker:0 has waited 30 s for ps:0, and waits 60 s at most.',
      'worker:0 has waited 55 s for ps:0, and waits 60 s at most.']
  now[0] = 61.0
  with pytest.raises(TimeoutError, match='worker:0 waited 60 s for ps:0. Look'):
    patience.check('ps:0', 'Look.')
  time_limit.Patience('ps:0', None).check('chief:0', 'Look.')


def test_a_start_has_the_limit_of_the_innermost_context():
  default = time_limit.start_limit_secs()
  with time_limit.start_limited_to(60.0):
    with time_limit.start_limited_to(30.0):
      with time_limit.start_limited_to(60.0):
        assert time_limit.start_limit_secs() == 60.0
      assert time_limit.start_limit_secs() == 30.0
    assert time_limit.start_limit_secs() == 60.0
  assert time_limit.start_limit_secs() == default
