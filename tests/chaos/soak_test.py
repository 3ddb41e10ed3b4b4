# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the soak."""

import pytest

from tests.chaos import page
from tests.chaos import soak


def _steps(*times_and_steps):
  return [[time, 1, step] for time, step in times_and_steps]


def test_stretches_from_fault_to_fault():
  # Two steps a second. The worker is dead from 10 to 14, all from 20 to 25.
  steps = {
      'chief-0': _steps((1, 2), (10, 20), (12, 24), (20, 36), (25, 30),
                        (28, 36), (30, 40)),
      'worker-0': _steps((9, 18), (14, 27), (17, 32), (19, 34), (26, 32)),
  }
  told = sorted((time, step) for of_task in steps.values()
                for time, _, step in of_task)
  first, second = soak.stretches_of(
      steps, [(10, 'worker:0', 'kill'), (20, 'ps:1', 'stop')], told, 30)
  assert first == soak.Stretch('worker', 'kill', 10, 16, 4.0, 4)
  assert second == soak.Stretch('ps', 'stop', 10, 4, 0.0, 5)
  assert soak.goodput([first], 2.0) == pytest.approx(16 / (2 * 9))
  assert soak.goodput([second], 2.0) == pytest.approx(4 / (2 * 10))
  assert soak.goodput([first, second], 2.0) == pytest.approx(20 / (2 * 19))


def test_a_worker_that_stays_away_is_away_to_the_end():
  steps = {'chief-0': _steps((1, 2), (8, 16)), 'worker-0': _steps((2, 4))}
  stretch, = soak.stretches_of(
      steps, [(4, 'worker:0', 'kill')], [(1, 2), (2, 4), (8, 16)], 8)
  assert stretch == soak.Stretch('worker', 'kill', 4, 12, 4, None)


def test_a_step_just_before_the_end_is_not_that_the_victim_is_back():
  steps = {'worker-0': _steps((4.01, 8), (9.0, 20), (9.1, 21))}
  stretch, = soak.stretches_of(
      steps, [(4, 'worker:0', 'kill')], [(4.01, 8), (9.0, 20), (9.1, 21)], 9.1)
  assert stretch.back_secs == 5.0


def test_faults_are_of_the_seed_and_come_as_often_as_asked():
  faults = soak.faults_of(1, 100_000, 500.0).split('; ')
  assert faults == soak.faults_of(1, 100_000, 500.0).split('; ')
  assert faults != soak.faults_of(2, 100_000, 500.0).split('; ')
  assert 180 <= len(faults) <= 220


def test_between_two_parts_no_time_passes():
  run_time = soak._run_time([10.0, 0.0, 4.0, 1010.0, 1011.0])
  assert [run_time(time) for time in (4.0, 10.0, 500.0, 1010.0, 1012.0)] == [
      4.0, 10.0, 10.0, 10.0, 12.0]


@pytest.mark.parametrize('name', [page.MINUTES, page.HOURS, page.JOINS])
def test_a_part_is_put_into_the_page_and_stays_there(
    monkeypatch, tmp_path, name):
  text = page.with_part(page.render({}), name, 'All is well.')
  monkeypatch.setattr(page, 'PATH', tmp_path / 'page.md')
  page.PATH.write_text(text)
  assert page.render({}) == text
  assert text.count('All is well.') == 1
