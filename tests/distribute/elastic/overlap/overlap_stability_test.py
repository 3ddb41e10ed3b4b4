# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The bound of docs/exchange.md against a simulation in numpy.

A worker trains on x * x / 2 with rate eta; a communication begins every
`period` steps, and its difference is taken `delay` steps later.
"""

from __future__ import annotations

import numpy as np
import pytest


def _bound(eta, period, delay):
  a, b = (1 - eta) ** period, (1 - eta) ** (period - delay)
  return 2 * (1 + a) / (1 + a + 2 * b)


def _growth(eta, period, delays, moving_rate, num_workers=1, rounds=400):
  """By what the state grows in a round, step by step, in the long run."""
  copies = np.random.RandomState(0).randn(num_workers)
  center, size = 1.0, []
  for turn in range(rounds):
    for worker in range(num_workers):
      snapshot = copies[worker]
      difference = moving_rate * (snapshot - center)
      center += difference
      delay = delays[turn % len(delays)]
      for step in range(1, period + 1):
        copies[worker] -= eta * copies[worker]
        if step == delay:
          copies[worker] -= difference
    norm = np.sqrt(center ** 2 + (copies ** 2).sum())
    size.append(np.log(norm))
    copies, center = copies / norm, center / norm
  return np.exp(np.mean(size[rounds // 2:]))


@pytest.mark.parametrize('eta', [0.05, 0.3, 0.9])
@pytest.mark.parametrize('period, delay', [
    (1, 1), (2, 1), (2, 2), (5, 4), (5, 5)])
def test_the_bound_divides_what_shrinks_from_what_grows(eta, period, delay):
  bound = _bound(eta, period, delay)
  assert _growth(eta, period, [delay], 0.98 * bound) < 1
  assert _growth(eta, period, [delay], 1.02 * bound) > 1


@pytest.mark.parametrize('eta', [0.05, 0.3, 0.9])
def test_it_is_that_of_three_workers_in_turn_too(eta):
  bound = _bound(eta, 3, 3)
  assert _growth(eta, 3, [3], 0.98 * bound, 3) < 1
  assert _growth(eta, 3, [3], 1.02 * bound, 3) > 1


@pytest.mark.parametrize('eta', [0.01, 0.1, 0.5, 1.0])
def test_two_thirds_are_stable_with_every_delay(eta):
  for period in range(1, 6):
    for delay in range(1, period + 1):
      assert _bound(eta, period, delay) >= 2 / 3
      assert _growth(eta, period, [delay], 0.66) < 1
  # And with delays that change.
  for seed in range(5):
    delays = np.random.RandomState(seed).randint(1, 6, size=400)
    assert _growth(eta, 5, delays, 0.66) < 1


def test_without_a_delay_of_the_gradient_it_is_the_bound_of_the_paper():
  for eta in (0.1, 0.5, 0.9):
    np.testing.assert_allclose(
        _bound(eta, 1, 1), (4 - 2 * eta) / (4 - eta), rtol=1e-12)
