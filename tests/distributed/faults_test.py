# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose in a cluster of processes, and what becomes of the run."""

import json

import pytest
import tensorflow as tf

from tests.forks import forked_programs
from tfplugin import events
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin import train_lib
from tfplugin.bin.processes import local_cluster

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]


def _options(model_dir, inject, **kwargs):
  return options_lib.TrainOptions(**{
      'model_dir': str(model_dir), 'wrapper': 'none', 'workers': 1, 'ps': 1,
      'evaluator': False, 'steps': 1500, 'finish_limit_secs': 60.0,
      'inject': inject, **kwargs})


def _events(model_dir, name, task=None):
  return [e for e in events.read_run(model_dir).events
          if e.name == name and task in (None, e.task)]


def _summary(model_dir):
  tasks = json.loads((model_dir / 'summary.json').read_text())['tasks']
  return {task['task']: task for task in tasks}


@pytest.mark.sampled(3)
def test_tasks_that_fail_come_back_and_the_run_ends_well(tmp_path):
  # The slow chief leaves steps for the worker that comes back.
  faults = ('kill worker:0 at step 100', 'slow chief:0 by 0.05 s at step 50',
            'stop chief:0 for 1 s at step 120',
            'terminate worker:0 at step 300')
  result = train_lib.train(_options(tmp_path, '; '.join(faults)))
  assert result.last_step >= 1500
  come = [e.details['fault'] for e in _events(tmp_path, 'injecting')]
  assert sorted(come) == sorted(faults)
  back = [e.details['what'] for e in _events(tmp_path, 'coming_back',
                                             'worker:0')]
  assert back == ['process'] * 2
  tasks = _summary(tmp_path)
  assert tasks['worker:0']['restarts'] == result.restarts['worker:0'] == 2
  assert tasks['worker:0']['reasons'] == ['was ended by SIGKILL',
                                          'ended with status 143']
  assert {task['status'] for task in tasks.values()} == {'done'}
  assert tasks['chief:0']['last_step'] >= 1500
  assert not forked_programs.left()


@pytest.mark.sampled(3)
def test_a_worker_that_is_stopped_for_20_s_is_waited_for_by_nobody(tmp_path):
  # The chief takes 0.05 s a step: it has steps left when the worker wakes up.
  result = train_lib.train(_options(
      tmp_path, 'slow chief:0 by 0.05 s at step 50; '
      'stop worker:0 for 20 s at step 100'))
  assert result.last_step >= 1500
  stopped, = [e for e in _events(tmp_path, 'injecting', 'worker:0')]
  steps = [e.step for e in _events(tmp_path, 'training', 'chief:0')
           if stopped.time < e.time < stopped.time + 20]
  assert len(steps) > 1 and steps[-1] > steps[0]
  assert any(e.time > stopped.time + 19
             for e in _events(tmp_path, 'training', 'worker:0'))
  assert not any(result.restarts.values())
  assert not forked_programs.left()


@pytest.mark.sampled(3)
def test_a_chief_that_is_killed_while_it_saves(tmp_path):
  fault = 'kill chief:0 while saving after step 100'
  result = train_lib.train(_options(tmp_path, fault))
  assert result.last_step >= 1500
  injected, = _events(tmp_path, 'injecting')
  # A save had begun, and was written in part or, where it is quick, whole.
  told = [e for e in _events(tmp_path, 'saving', 'chief:0')
          if e.pid == injected.pid and e.time <= injected.time]
  assert [e.kind for e in told[-2:]] in (['end', 'begin'], ['begin', 'end'])
  assert result.restarts['chief:0'] == 1
  newest = tf.train.latest_checkpoint(str(tmp_path))
  assert tf.train.load_checkpoint(newest).get_tensor('global_step') >= 1500


def test_an_exception_of_the_chief_is_the_end_and_named(tmp_path):
  with pytest.raises(local_cluster.RoleError,
                     match='^chief:0 ended with status 1(.|\n)*Injected fault: '
                           'raise chief:0 at step 50'):
    train_lib.train(_options(tmp_path, 'raise chief:0 at step 50'))
  dying, = _events(tmp_path, 'dying', 'chief:0')
  assert dying.details['error'] == 'InjectedError'
  assert _summary(tmp_path)['chief:0']['status'] == 'failed'
  assert run_files.global_step(str(tmp_path)) >= 0
  assert not forked_programs.left()
