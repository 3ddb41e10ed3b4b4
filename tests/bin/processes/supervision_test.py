# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of looking after a run, with small programs."""

import json
import sys
import time

import pytest

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import supervision
from tfplugin.bin.processes import watches
from tfplugin.distribute import cluster_config
from tfplugin.events import record
from tfplugin.report import outcome
from tfplugin.report.reading import run_data

_LIMIT = 60
# As a task that trains tells it: a step, and after it none.
_TELLS = '''
import pathlib, sys, time
events = pathlib.Path(sys.argv[1], 'events')
events.mkdir()
(events / 'chief-0.jsonl').write_text(sys.argv[2])
time.sleep(float(sys.argv[3]))
'''
_STEP = record.encode(record.Event(
    1.0, 1, 'chief:0', 'training', 'begin', {'step': 7})).decode()


def _run(tmp_path, codes, **settings):
  """Runs a program for each task; returns the run, what it said, its error."""
  said = []
  tasks = [cluster_config.Task(job, 0) for job in codes]
  run = supervision.SupervisedRun(
      supervision.Settings(str(tmp_path / 'logs'), tmp_path / 'summary.json',
                           str(tmp_path), **settings), {}, tasks, said.append)
  try:
    with run:
      for task, code in zip(tasks, codes.values()):
        run.start(task, [sys.executable, '-c', *code], {})
      deadline = time.monotonic() + _LIMIT
      for running in run.rounds():
        assert time.monotonic() < deadline, running
  except local_cluster.RoleError as e:
    return run, said, e
  return run, said, None


def _written(tmp_path):
  return json.loads((tmp_path / 'summary.json').read_text())


def test_a_run_that_goes_on_without_its_worker(tmp_path):
  run, said, error = _run(tmp_path, {
      'chief': [_TELLS, str(tmp_path), _STEP, '1'],
      'worker': ['raise SystemExit(3)']})
  assert error is None
  assert said == ['worker:0 ended with status 3; the run continues without it. '
                  f'Its log: {tmp_path}/logs/worker-0.log']
  assert [(t.task, t.status, t.last_step) for t in run.summary] == [
      ('chief:0', 'done', 7), ('worker:0', 'lost', None)]
  assert run.states['chief:0'].step == 7 and run.states['worker:0'].last is None
  assert run.ends == {'chief:0': 'done', 'worker:0': 'ended with status 3'}
  assert _written(tmp_path)['error'] is None


@pytest.mark.parametrize('ps_ends, is_reported', [(True, False), (False, True)])
def test_a_lost_worker_is_reported_to_servers_that_live(
    tmp_path, monkeypatch, ps_ends, is_reported):
  reported = []
  monkeypatch.setattr(supervision, '_REPORT_AFTER_SECS', 1.0)
  monkeypatch.setattr(supervision.task_records, 'report_finished',
                      lambda cluster, name, **unused: reported.append(name))
  _, said, error = _run(tmp_path, {
      'worker': ['raise SystemExit(3)'],
      'ps': ['raise SystemExit(3)' if ps_ends else
             'import time; time.sleep(2)']})
  assert 'ended with status 3; the run continues' in said[0]
  assert (error is not None) is ps_ends
  assert reported == ['worker:0'] * is_reported


def test_a_model_dir_that_no_task_wrote_to_is_said(tmp_path):
  _, said, _ = _run(tmp_path, {'chief': ['pass']})
  assert said == [f'No task wrote events to --model_dir={tmp_path}: the '
                  'program has another directory, or trains without '
                  'tfplugin.estimator.train_and_evaluate. Give both the same '
                  'directory.']


def test_faults_that_never_came_are_said(tmp_path):
  came = record.encode(record.Event(
      1.0, 1, 'chief:0', 'injecting', 'instant', {
          'fault': 'nan chief:0 at step 7', 'step': 7})).decode()
  _, said, _ = _run(tmp_path, {
      'chief': [_TELLS, str(tmp_path), _STEP + came, '0']},
      inject='nan chief:0 at step 7; kill chief:0 at step 9')
  line, = said
  assert line.startswith('The fault "kill chief:0 at step 9" never came: ')


def test_a_run_that_does_not_go_on_without_its_worker(tmp_path):
  run, said, error = _run(
      tmp_path, {'chief': ['import time; time.sleep(120)'],
                 'worker': ['raise SystemExit("no space left")']},
      keep_going=False)
  assert 'no space left' in str(error) and not said
  assert [t.status for t in run.summary] == ['ended', 'failed']
  assert _written(tmp_path)['error'] == str(error)


# A chief that stops on request, as `train_and_evaluate` does.
_STOPS = """
import pathlib, signal, sys, time
def stop(*unused):
  with file.open('a') as events:
    events.write(sys.argv[3])
  raise SystemExit(143)
signal.signal(signal.SIGTERM, stop)
file = pathlib.Path(sys.argv[1], 'events', 'chief-0.jsonl')
file.parent.mkdir()
file.write_text(sys.argv[2])
time.sleep(60)
"""
_FAILS = """
import pathlib, sys, time
while not pathlib.Path(sys.argv[1], 'events', 'chief-0.jsonl').exists():
  time.sleep(.01)
raise SystemExit('no space left')
"""


@pytest.mark.parametrize('job, settings', [
    ('ps', {}), ('worker', {'keep_going': False})])
@pytest.mark.parametrize('chief', [
    [_STOPS, record.encode(record.Event(
        2.0, 1, 'chief:0', 'stopped', 'instant',
        {'signal': 'SIGTERM', 'step': 7}, 3)).decode()],
    [_TELLS, '60']])
def test_the_report_says_that_the_run_failed(tmp_path, chief, job, settings):
  code, argument = chief
  step = json.loads(_STEP) | {'session': 3}
  _, _, error = _run(tmp_path, {
      'chief': [code, str(tmp_path), json.dumps(step) + '\n', argument],
      job: [_FAILS, str(tmp_path)]}, session=3, **settings)
  assert f'{job}:0 ended with status 1' in str(error)
  run = run_data.read(tmp_path)
  section = outcome.measure(run, {'goodput': None})
  # The event of the launcher is of the same session.
  assert [(s['number'], s['outcome']) for s in section['sessions']] == [
      (3, 'failed at step 7')]
  death, = (e for e in run.reading.events if e.name == 'dying')
  assert f'{job}:0 ended with status 1' in death.details['message']


@pytest.mark.parametrize('details, has_stopped', [
    ({}, True), ({'ends_task': True}, False)])
def test_a_task_that_is_done_is_not_stopped(tmp_path, details, has_stopped):
  event = json.loads(_STEP) | {'kind': 'end', **details}
  run = supervision.SupervisedRun(
      supervision.Settings(str(tmp_path / 'logs'), tmp_path / 'summary.json',
                           str(tmp_path)), {},
      [cluster_config.Task('chief', 0)], print)
  with pytest.raises(KeyboardInterrupt):
    with run:
      role = run.start(cluster_config.Task('chief', 0), [
          sys.executable, '-c', _TELLS, str(tmp_path),
          json.dumps(event) + '\n', '0'], {})
      while role.status is None:
        run.cluster.check()
        time.sleep(0.02)
      raise KeyboardInterrupt
  last = run_data.read(tmp_path).reading.events[-1]
  assert (last.name == 'stopped') is has_stopped


def test_a_restart_is_told(tmp_path):
  code = ('import os, pathlib, signal; came = pathlib.Path('
          f'{str(tmp_path / "came")!r}); is_second = came.exists(); '
          'came.touch(); is_second or os.kill(os.getpid(), signal.SIGKILL)')
  run, said, error = _run(
      tmp_path, {'chief': [code]}, policy=restarts.RestartPolicy(
          restarts.parse('on_failure')))
  assert error is None
  assert said[:1] == ['chief:0 was ended by SIGKILL; it restarts in 0 s (1 of'
                      f' 3). Its log: {tmp_path}/logs/chief-0.log']
  assert (run.summary[0].status, run.summary[0].restarts) == ('done', 1)


def test_a_stall_ends_the_run(tmp_path):
  run, said, error = _run(
      tmp_path, {'chief': [_TELLS, str(tmp_path), _STEP, '120']},
      stall_limit=2.0)
  assert isinstance(error, watches.StallError)
  assert said[0] == 'No task has made a step for 2 s:'
  assert said[1].startswith('  chief:0 ')
  assert run.summary[0].status == 'ended'


def test_a_summary_that_cannot_be_written_is_no_error(tmp_path):
  (tmp_path / 'summary.json').mkdir()
  _, said, error = _run(tmp_path, {'chief': ['pass']})
  assert error is None
  assert said[1:] == ['The summary cannot be written: Is a directory.']


def test_the_cause_of_another_error_is_written(tmp_path):
  run = supervision.SupervisedRun(
      supervision.Settings(
          str(tmp_path / 'logs'), tmp_path / 'summary.json'), {}, [], print)
  with pytest.raises(KeyboardInterrupt), run:
    raise KeyboardInterrupt
  assert _written(tmp_path)['error'] == 'stopped on request'


@pytest.mark.parametrize('keep_going', [True, False])
def test_a_worker_that_hangs_after_the_others_is_lost(tmp_path, keep_going):
  run, said, error = _run(
      tmp_path, {'ps': ['pass'], 'chief': ['pass'], 'worker': [
          'import time; time.sleep(120)']},
      keep_going=keep_going, left_behind_secs=0.03,
      policy=restarts.RestartPolicy(restarts.parse('on_failure')))
  assert said[0].startswith('worker:0 still runs')
  assert (error is None) == keep_going
  assert [t.status for t in run.summary] == [
      'done', 'done', 'lost' if keep_going else 'failed']
  assert run.summary[2].restarts == 0
  assert 'still ran after' in run.summary[2].reasons[0]
