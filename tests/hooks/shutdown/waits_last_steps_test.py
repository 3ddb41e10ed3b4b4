# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the chief's wait for the others' last steps."""

import sys

import pytest
import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.hooks.shutdown import lost_peers
from tfplugin.hooks.shutdown import waits as waits_lib

_CLUSTER = tf.train.ClusterSpec(
    {'worker': ['a:1', 'b:1'], 'ps': ['c:1']})
_CHIEF = cluster_task.ClusterTask(_CLUSTER, 'worker', 0)
_WORKER = cluster_task.ClusterTask(_CLUSTER, 'worker', 1)


@pytest.fixture
def waits(monkeypatch):
  """The limits of the waits so far; each looks once and ends at its limit."""
  limits = []

  def wait(task, time_limit_secs, while_waiting):
    del task
    limits.append(time_limit_secs)
    while_waiting()
    raise TimeoutError('worker:0 waited for the last step of worker:1.')

  monkeypatch.setattr(waits_lib, 'wait_for_workers', wait)
  return limits


def test_a_wait_up_to_its_limit_is_no_error(waits, caplog):
  looks = []
  waits_lib.LastSteps(_CHIEF, 3, 7.0).wait(lambda: looks.append(1))
  assert waits == [7.0] and looks
  assert 'The checkpoint is saved as it is.' in caplog.text


def test_after_a_signal_nobody_is_waited_for(waits):
  waits_lib.LastSteps(_CHIEF, 3, 7.0, lambda: True).wait(lambda: None)
  assert not waits


def test_a_lost_parameter_server_is_worth_a_restart(waits, monkeypatch):
  monkeypatch.setattr(sys, 'excepthook', sys.excepthook)

  def look():
    raise tf.errors.FailedPreconditionError(None, None, 'no value: w')

  with pytest.raises(lost_peers.LostPeerError, match=(
      r'worker:0 lost a parameter server .* Received: no value: w Restart')):
    waits_lib.LastSteps(_CHIEF, 3, 7.0).wait(look)


@pytest.mark.parametrize('task, max_steps, step, is_last', [
    (_CHIEF, 3, 2, False), (_CHIEF, 3, 3, True), (_CHIEF, 3, 4, True),
    (_CHIEF, None, 4, False), (_WORKER, 3, 3, False),
    (cluster_task.ClusterTask(), 3, 3, False)])
def test_which_checkpoints_are_left_to_the_end(task, max_steps, step, is_last):
  steps = waits_lib.LastSteps(task, max_steps, 7.0)
  assert steps.comes_after(step) == is_last
  assert steps.awaits_others() == (task is _CHIEF)
