# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the allowed settings of elastic averaging."""

from __future__ import annotations

import numpy as np
import pytest

from tfplugin.ops import elastic_arguments


@pytest.mark.parametrize('value', [0, -3])
def test_period_must_be_positive(value):
  with pytest.raises(ValueError, match=f'`period`.*Received: {value}'):
    elastic_arguments.check_positive_integer('period', value)


@pytest.mark.parametrize('value', [2.5, 2.0, '3', None, True])
def test_period_must_be_an_integer(value):
  with pytest.raises(TypeError, match='`period` must be an integer. Received'):
    elastic_arguments.check_positive_integer('period', value)


def test_numpy_integers_are_integers():
  assert elastic_arguments.check_positive_integer('n', np.int64(3)) == 3


@pytest.mark.parametrize('value', [-0.1, 1.5, float('nan'), float('inf')])
def test_moving_rate_is_in_the_unit_interval(value):
  with pytest.raises(ValueError, match='`moving_rate` must be in'):
    elastic_arguments.check_moving_rate(value)


@pytest.mark.parametrize('value', [None, 0, 0.5, 1, np.float32(0.1)])
def test_moving_rates_that_are_fine(value):
  elastic_arguments.check_moving_rate(value)


@pytest.mark.parametrize('value', ['0.5', True, [0.5]])
def test_moving_rate_is_a_number(value):
  with pytest.raises(TypeError, match='`moving_rate` must be a number'):
    elastic_arguments.check_moving_rate(value)


@pytest.mark.parametrize('value', [-1, float('inf'), float('nan')])
def test_rho_is_not_negative(value):
  with pytest.raises(ValueError, match='`rho`'):
    elastic_arguments.check_rho(value)


def test_rho_is_a_number():
  with pytest.raises(TypeError, match='`rho` must be a number'):
    elastic_arguments.check_rho('much')


def test_choice_names_what_there_is():
  with pytest.raises(ValueError, match=r"`order`.*'a', 'b'.*Received: 'c'"):
    elastic_arguments.check_choice('order', 'c', ('a', 'b'))


def test_a_flag_is_a_bool():
  elastic_arguments.check_flag('synchronous', False)
  with pytest.raises(TypeError, match="`synchronous` .*Received: 'no'"):
    elastic_arguments.check_flag('synchronous', 'no')
