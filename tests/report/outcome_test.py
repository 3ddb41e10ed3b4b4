# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outcomes of the sessions of a run."""

import pytest

from tests.report import hand_written
from tfplugin.report import outcome
from tfplugin.report.reading import run_data

event = hand_written.event
_TRAINS = [event(0, 'chief:0', 'training', 'begin', step=1),
           event(0, 'worker:0', 'training', 'begin', step=1),
           event(9, 'chief:0', 'training', 'end', step=1234)]
_SPEED = {'goodput': 0.98}


def _measured(tmp_path, *events):
  hand_written.write_events(tmp_path, *_TRAINS, *events)
  return outcome.measure(run_data.read(tmp_path), _SPEED)


@pytest.mark.parametrize('events, text', [
    ([event(10, 'chief:0', 'ended'), event(10, 'worker:0', 'ended')],
     'finished at step 1,234'),
    # The others have gone on without a worker.
    ([event(10, 'chief:0', 'ended'),
      event(8, 'worker:0', 'dying', error='ValueError', message='')],
     'finished at step 1,234'),
    # It was a worker's leave alone.
    ([event(8, 'worker:0', 'stopped', step=9), event(10, 'chief:0', 'ended')],
     'finished at step 1,234'),
    ([event(10, 'chief:0', 'dying', error='ValueError', message='')],
     'failed at step 1,234'),
    # The launcher stops the others.
    ([event(10, 'chief:0', 'dying', error='ValueError', message=''),
      event(11, 'worker:0', 'stopped', signal='SIGTERM', step=1230)],
     'failed at step 1,234'),
    # It has stopped the chief because another task failed.
    ([event(10, 'worker:0', 'dying', error='ValueError', message=''),
      event(11, 'chief:0', 'stopped', step=1234, saved_step=1234),
      event(12, 'chief:0', 'dying', error='RoleError', message='')],
     'failed at step 1,234'),
    ([event(10, 'chief:0', 'stopped', step=1234, saved_step=1234)],
     'stopped on request at step 1,234, saved model.ckpt-1234, the same '
     'command continues'),
    # A program with `EventsHook` alone.
    ([event(10, 'chief:0', 'training', 'end', step=1234, ends_task=True)],
     'finished at step 1,234'),
    ([], 'still running, or was killed at step 1,234')])
def test_how_a_session_ends(tmp_path, events, text):
  found = _measured(tmp_path, *events)
  assert found['text'] == f'{text}, goodput 98%'
  [session] = found['sessions']
  assert (session['first_step'], session['last_step'], session['outcome']) == (
      1, 1234, text)


def test_each_session_has_its_end(tmp_path):
  again = event(20, 'chief:0', 'training', 'begin', step=1234)
  found = _measured(
      tmp_path, event(10, 'chief:0', 'stopped', step=1234),
      again._replace(session=2), event(
          30, 'chief:0', 'ended')._replace(session=2))
  assert [s['outcome'] for s in found['sessions']] == [
      'stopped on request at step 1,234', 'finished at step 1,234']
  assert found['text'].startswith('finished at step 1,234')


def test_faults_are_counted(tmp_path):
  found = _measured(
      tmp_path, event(3, 'worker:0', 'injecting', fault='kill worker:0'))
  assert found['num_faults'] == 1 and found['text'].endswith(', 1 fault')
