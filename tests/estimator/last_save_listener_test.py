# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the save that waits; cluster_training_test has a chief save."""

import pytest

from tfplugin.distribute import cluster_task
from tfplugin.estimator import last_save_listener
from tfplugin.hooks import wait_for_workers_hook


@pytest.fixture
def waits(monkeypatch):
  """The limits of the waits so far; each ends at its limit."""
  limits = []

  def wait(task, time_limit_secs):
    del task
    limits.append(time_limit_secs)
    raise TimeoutError('chief:0 waited for the last step of worker:0.')

  monkeypatch.setattr(wait_for_workers_hook, 'wait_for_workers', wait)
  return limits


def _save(max_steps, *steps):
  listener = last_save_listener.LastSaveListener(
      cluster_task.ClusterTask(), max_steps, 7.0)
  for step in steps:
    listener.before_save(None, step)


def test_a_save_at_the_last_step_waits_and_never_fails(waits):
  _save(3, 0, 2, 3)
  assert waits == [7.0]


def test_a_save_beyond_the_last_step_waits_too_but_none_waits_twice(waits):
  _save(3, 4, 5)
  assert waits == [7.0]


def test_nothing_waits_before_the_last_step(waits):
  _save(3, 0, 2)
  _save(None, 0, 2, 3)
  assert not waits
