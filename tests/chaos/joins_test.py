# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan and the figures of random joins and leaves."""

import pytest

from tests.chaos import joins
from tfplugin import events


def test_a_seed_plans_the_same_stays_and_another_one_others():
  stays = joins.plan(30, 600.0, 1)
  assert stays == joins.plan(30, 600.0, 1) != joins.plan(30, 600.0, 2)
  assert len(stays) == 30 and stays == sorted(stays)
  assert all(0 <= stay.start < 600 and 0 < stay.secs for stay in stays)
  # On average fewer are present than the run takes.
  assert sum(stay.secs for stay in stays) < 600 * joins._MAX_WORKERS
  assert {stay.is_killed for stay in stays} == {False, True}


def test_goodput_counts_what_is_beyond_twice_the_own_pace():
  assert joins.goodput([[0, 1, 2, 3]]) == 1.0
  assert joins.goodput([[0, 1, 2, 6, 7]]) == pytest.approx(5 / 7)
  # A slower task has its own pace; one with a single step counts nothing.
  assert joins.goodput([[0, 1, 2, 6, 7], [0, 9, 18], [5]]) == pytest.approx(
      (5 + 18) / (7 + 18))


def test_the_chief_counts_itself_and_those_who_are_there():
  told = [events.Event(time, 1, 'chief:0', name, 'instant', {})
          for time, name in ((5.0, 'joined'), (6.0, 'joined'), (9.0, 'left'))]
  assert joins.counts_of(told) == [(0.0, 1), (5.0, 2), (6.0, 3), (9.0, 2)]
