# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is said of a run that has ended."""

import json
import resource
import sys

import pytest

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import task_states
from tfplugin.distribute import cluster_config

_TASKS = [
    run_summary.TaskSummary('chief:0', 'done', 0, 0, 120, ()),
    run_summary.TaskSummary('worker:0', 'lost', 1, 2, None, (
        'was ended by SIGKILL', 'was ended by SIGKILL', 'ended with status 1')),
]


def test_the_table():
  assert run_summary.table(_TASKS) == [
      'task      status  restarts  last step  reasons',
      'chief:0   done    0         120',
      'worker:0  lost    2                    was ended by SIGKILL (2 times); '
      'ended with status 1']


def test_the_file(tmp_path):
  path = run_summary.path_in(tmp_path)
  run_summary.write(path, _TASKS, error='ps:0 ended')
  read = json.loads(path.read_text())
  assert (read['version'], read['error']) == (1, 'ps:0 ended')
  assert read['tasks'][0] == {
      'task': 'chief:0', 'status': 'done', 'exit_status': 0, 'restarts': 0,
      'last_step': 120, 'reasons': []}


def test_the_summaries_of_earlier_sessions_stay(tmp_path):
  path = run_summary.path_in(tmp_path)
  for step in (100, 200, 300):
    run_summary.write(path, [_TASKS[0]._replace(last_step=step)],
                      error=f'stopped at {step}')
  read = json.loads(path.read_text())
  assert read['tasks'][0]['last_step'] == 300
  assert [(one['error'], one['tasks'][0]['last_step'])
          for one in read['earlier']] == [('stopped at 100', 100),
                                          ('stopped at 200', 200)]


def test_a_full_disk_leaves_the_summaries_as_they_were(tmp_path):
  path = run_summary.path_in(tmp_path)
  run_summary.write(path, _TASKS)
  before = path.read_text()
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
  try:
    with pytest.raises(OSError):
      run_summary.write(path, _TASKS)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  assert path.read_text() == before
  assert list(tmp_path.iterdir()) == [path]


def test_what_became_of_each_task(tmp_path):
  codes = {'chief': 'pass', 'worker': 'raise SystemExit(3)',
           'ps': 'import time; time.sleep(120)'}
  with local_cluster.LocalCluster(tmp_path) as cluster:
    for job, code in codes.items():
      cluster.start(cluster_config.Task(job, 0),
                    [sys.executable, '-c', code], {})
    for running in cluster.rounds():
      if running == {'ps'}:
        break
  states = {f'{job}:0': task_states.State() for job in codes}
  states['chief:0'].step = 7
  # Of another launch.
  states['worker:3'] = task_states.State(joined=0.0, left=0.0, step=6)
  states['worker:4'] = task_states.State(step=6)  # It is not known to be here.
  assert run_summary.summarize(cluster, states) == [
      ('chief:0', 'done', 0, 0, 7, ()),
      ('worker:0', 'lost', 3, 0, None, ('ended with status 3',)),
      ('ps:0', 'ended', -15, 0, None, ()),
      ('worker:3', 'joined', None, 0, 6, (states['worker:3'].end,))]


def test_several_launches_of_a_run_have_a_summary_each(tmp_path):
  assert [run_summary.path_in(tmp_path, who).name for who in ('', 'a.b')] == [
      'summary.json', 'summary-a.b.json']
