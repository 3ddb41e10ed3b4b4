# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rates, lost time and goodput of runs whose times are known."""

import json

import pytest

from tests.report import hand_written
from tfplugin.report import speed
from tfplugin.report import timeline
from tfplugin.report.reading import run_data

event = hand_written.event


def test_time_lost_by_cause_and_goodput(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  section = speed.measure(run_data.read(tmp_path))
  # chief: 5 starting, 10 + 19 training, 1 saving, 5 ending. worker: 2 + 2 + 5
  # starting, 3 waiting, 6 + 10 training, of whose gradients 10 of 30 were
  # dropped, 7 dead, 1 ending.
  assert section['lost_secs'] == pytest.approx({
      'starting': 14, 'waiting': 3, 'saving': 1, 'ending': 6, 'dead': 7,
      'dropped gradients': 16 / 3})
  assert section['task_secs'] == 40 + 36
  assert section['useful_secs'] == pytest.approx(29 + 16 * 2 / 3)
  assert section['goodput'] == pytest.approx((29 + 32 / 3) / 76)
  assert list(section['lost_secs'])[0] == 'starting'


def test_steps_and_rates(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  section = speed.measure(run_data.read(tmp_path))
  worker = section['workers']['worker:0']
  # Two processes: 11 and 21 steps; 5 s and 10 s at 2 steps/s.
  assert (worker['num_steps'], worker['steps_per_sec']) == (32, 2.0)
  assert worker['step']['x'] == [7, 12, 25, 35]
  assert worker['step']['y'] == [9, 60, 160, 200]
  assert worker['rate']['x'] == [7, 12, 12, 25, 35]
  assert worker['rate']['y'] == [2, 2, None, 2, 2]
  assert section['num_examples'] == (32 + 181) * 32
  # chief: 6 steps/s from 5 s to 35 s; 32 rows a step.
  assert section['rate_of_all']['x'] == [5, 7, 12, 25, 35]
  assert section['rate_of_all']['y'] == [192, 256, 192, 256, 0]
  assert (section['first_step'], section['last_step']) == (0, 200)
  assert section['missing'] == []


def write_container_run(run_dir):
  """A worker is away from 600 s to 900 s; each process has the pid 1."""
  hand_written.write_events(
      run_dir,
      event(0, 'chief:0', 'starting', 'begin'),
      event(0, 'chief:0', 'starting', 'end', step=0),
      event(0, 'chief:0', 'training', 'begin', step=1, num_steps=1,
            step_counts='batches'),
      *(event(secs, 'chief:0', 'training', step=secs, num_steps=secs,
              steps_per_sec=1.0) for secs in range(10, 1000, 10)),
      event(1000, 'chief:0', 'training', 'end', step=1000, num_steps=1000,
            steps_per_sec=1.0),
      event(1000, 'chief:0', 'ended'),
      event(0, 'worker:0', 'starting', 'begin'),
      event(0, 'worker:0', 'training', 'begin', step=1, num_steps=1,
            step_counts='batches'),
      event(600, 'worker:0', 'training', step=600, num_steps=10,
            steps_per_sec=0.5),
      event(900, 'worker:0', 'coming_back', what='process', step=600),
      event(900, 'worker:0', 'starting', 'begin'),
      event(900, 'worker:0', 'training', 'begin', step=900, num_steps=20,
            step_counts='batches'),
      event(1000, 'worker:0', 'training', 'end', step=1000, num_steps=40,
            steps_per_sec=0.5),
      event(1000, 'worker:0', 'ended'))


def test_a_task_dies_in_a_container_too(tmp_path):
  write_container_run(tmp_path)
  run = run_data.read(tmp_path)
  section = speed.measure(run)
  assert section['lost_secs'] == pytest.approx({'dead': 300})
  assert section['goodput'] == pytest.approx(1700 / 2000)
  worker = section['workers']['worker:0']
  # A rate of no process lies between the two.
  assert worker['rate']['x'] == [0, 600, 600, 900, 1000]
  assert worker['num_steps'] == 10 + 40
  assert section['batches']['lost'] == {'worker:0': ['no last event']}
  task = timeline.measure(run)['tasks']['worker:0']
  assert task['processes'] == 2
  assert {'state': 'dead', 'start': 600, 'end': 900, 'on': ()} in task['spans']


def test_steps_that_were_made_twice(tmp_path):
  hand_written.write_events(
      tmp_path,
      event(0, 'chief:0', 'starting', 'begin'),
      event(0, 'chief:0', 'starting', 'end', step=100),
      event(0, 'chief:0', 'training', 'begin', step=100, num_steps=1),
      event(20, 'chief:0', 'training', step=400, num_steps=300),
      event(25, 'chief:0', 'coming_back', what='session', step=300),
      event(45, 'chief:0', 'training', 'end', step=500, num_steps=500),
      event(45, 'chief:0', 'ended', step=500))
  section = speed.measure(run_data.read(tmp_path))
  # 400 steps were kept and 100 lost: a fifth of the 40 s of training.
  assert section['redone_steps'] == 100
  assert section['lost_secs'] == pytest.approx({
      'steps made twice': 8, 'session lost': 5})
  assert section['goodput'] == pytest.approx(32 / 45)


def _two_sessions(run_dir, **first):
  """10 s of training at 2 steps/s, and 30 s at 1 step/s, with other flags."""
  newest = {'wrapper': 'drop_stale', 'batch_size': 8}
  hand_written.write_options(run_dir, **newest)
  (run_dir / 'train_options-1.json').write_text(json.dumps(
      {**newest, **first}))
  hand_written.write_events(run_dir, *(one._replace(session=session) for one,
                                       session in (
      (event(0, 'chief:0', 'training', 'begin', step=1, num_steps=1), 1),
      (event(10, 'chief:0', 'dropping', num_dropped=10, num_applied=10), 1),
      (event(10, 'chief:0', 'training', 'end', step=20, num_steps=20,
             steps_per_sec=2.0), 1),
      (event(10, 'chief:0', 'ended'), 1),
      (event(20, 'chief:0', 'starting', 'end', pid=2, step=20), 2),
      (event(20, 'chief:0', 'training', 'begin', pid=2, step=21, num_steps=1),
       2),
      (event(50, 'chief:0', 'training', 'end', pid=2, step=50, num_steps=30,
             steps_per_sec=1.0), 2),
      (event(50, 'chief:0', 'ended', pid=2), 2))))
  return speed.measure(run_data.read(run_dir))


def test_each_session_has_its_share_of_dropped_gradients(tmp_path):
  section = _two_sessions(tmp_path, batch_size=32)
  # One half of the first 10 s; no gradient of the other 30 s.
  assert section['lost_secs'] == pytest.approx({'dropped gradients': 5})
  assert section['goodput'] == pytest.approx(35 / 40)


def test_each_session_has_its_share_of_steps_made_twice(tmp_path):
  told = [(1, 1, 'training', 'begin', 0), (1, 10, 'training', 'end', 100),
          (2, 15, 'starting', 'end', 50), (2, 20, 'training', 'begin', 51),
          (2, 50, 'training', 'end', 250)]
  hand_written.write_events(tmp_path, *(
      event(secs, 'chief:0', name, kind, pid=session, step=step
            )._replace(session=session)
      for session, secs, name, kind, step in told))
  section = speed.measure(run_data.read(tmp_path))
  # Half of the steps of the first 9 s, none of the second session.
  assert section['redone_steps'] == 50
  assert section['lost_secs']['steps made twice'] == pytest.approx(4.5)


def test_each_session_has_its_batch_size(tmp_path):
  section = _two_sessions(tmp_path, batch_size=32)
  assert section['num_examples'] == 20 * 32 + 30 * 8
  assert section['rate_of_all']['x'] == [0, 10, 20, 50]
  assert section['rate_of_all']['y'] == [64, 0, 8, 0]


def test_a_session_without_a_batch_size_has_steps(tmp_path):
  section = _two_sessions(tmp_path, batch_size=None)
  assert (section['rate_unit'], section['num_examples']) == ('steps/s', None)
  assert section['rate_of_all']['y'] == [2, 0, 1, 0]


def test_what_a_dying_task_knew_last_is_no_step_of_the_run(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', step=50),
      event(1, 'worker:0', 'coming_back', what='session', step=20),
      event(2, 'worker:0', 'dying', step=50),
      event(3, 'chief:0', 'coming_back', what='session', step=20),
      event(4, 'chief:0', 'training', step=30))
  section = speed.measure(run_data.read(tmp_path))
  assert (section['redone_steps'], section['last_step']) == (30, 30)


def test_without_a_batch_size_steps_are_shown(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', num_steps=1),
      event(5, 'chief:0', 'training', num_steps=11, steps_per_sec=2.0))
  section = speed.measure(run_data.read(tmp_path))
  assert (section['rate_unit'], section['num_examples']) == ('steps/s', None)
  assert section['rate_of_all']['y'] == [2, 0]
  assert 'train_options.json' in section['missing'][0]


def test_a_run_in_which_nobody_trains_has_no_goodput(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'ps:0', 'starting', 'begin'))
  section = speed.measure(run_data.read(tmp_path))
  assert section['goodput'] is None and section['workers'] == {}
