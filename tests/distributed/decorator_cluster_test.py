# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorated model_fns in processes: chief, 2 workers, 2 ps, evaluator.

The workers run as they like. The values that each recorded are checked for
whatever holds in every order of their steps.
"""

import json
import os
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]

PROGRAM = pathlib.Path(__file__).with_name('decorator_program.py')
RATE = 0.5
MOVING_RATE = 0.25
WORKERS = ('chief-0', 'worker-0', 'worker-1')
# TensorFlow's own wait is 30 s; this much is for a loaded machine.
LATEST_START_SECONDS = 20
# A worker stops after a step that read 39 or more. When that is reached, each
# is in a step that may have read less, and makes one more.
MAX_STEPS = 40
MOST_APPLIED = MAX_STEPS - 2 + 2 * len(WORKERS)


def run(decorators, directory):
  """Runs the cluster; returns where, and the workers' records."""
  root = str(PROGRAM.parents[2])
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('PYTHONPATH', os.pathsep.join(
        [root, os.environ.get('PYTHONPATH', '')]))
    launch_lib.launch(launch_options.LaunchOptions(
        command=(sys.executable, str(PROGRAM), decorators, str(directory)),
        logs_dir=str(directory / 'logs'), workers=2, ps=2, evaluator=True))
  return directory, [json.loads((directory / f'{name}.json').read_text())
                     for name in WORKERS]


@pytest.fixture(scope='module', name='elastic')
def _elastic(tmp_path_factory, forking):
  return run('elastic', tmp_path_factory.mktemp('elastic'))


@pytest.fixture(scope='module', name='dropping')
def _dropping(tmp_path_factory, forking):
  return run('drop_stale_and_clip', tmp_path_factory.mktemp('dropping'))


def _checkpoint(directory):
  checkpoint = tf.train.load_checkpoint(str(directory))
  return {name: checkpoint.get_tensor(name)
          for name in checkpoint.get_variable_to_shape_map()}


def _check_start(records):
  starts = [record['begun'] for record in records if record['begun']]
  assert records[0]['begun'] is not None
  assert max(starts) - records[0]['begun'] < LATEST_START_SECONDS


def _check_evaluation_and_export(directory):
  """Both are of what the last checkpoint holds."""
  values = _checkpoint(directory / 'model')
  seen = {}
  for path in (directory / 'model' / 'eval').glob('events*'):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        if value.tag == 'w':
          seen[event.step] = value.simple_value
  assert seen[int(values['global_step'])] == pytest.approx(values['w'][0])
  exported, = (directory / 'model' / 'export' / 'last').iterdir()
  served = _checkpoint(exported / 'variables' / 'variables')
  np.testing.assert_array_equal(served['w'], values['w'])


def test_elastic_centre_is_start_plus_all_differences(elastic):
  directory, records = elastic
  center, communications = np.ones(2), 0
  for record in records:
    copies = np.array([seen['w'] for seen in record['values']])
    # Each step takes RATE off; the rest of a change went into the centre.
    differences = copies[:-1] - RATE - copies[1:]
    differences[:1] = 0  # Before its first step a copy may start anew.
    exchanged = np.abs(differences).max(axis=1, initial=0) > 1e-6
    assert not exchanged[0::2].any(), 'an exchange in an odd step'
    communications += len(exchanged[1::2])
    center += differences.sum(axis=0)
  values = _checkpoint(directory / 'model')
  np.testing.assert_allclose(values['w'], center, rtol=1e-4)
  assert values['global_step'] == communications >= MAX_STEPS


def test_first_communication_of_the_first_worker_is_the_formula(elastic):
  """Whoever communicates first has begun where the centre is then."""
  _, records = elastic
  first = np.ones(2) - 2 * RATE
  moved = [np.array(record['values'][2]['w']) for record in records
           if len(record['values']) > 2]
  expected = first - MOVING_RATE * (first - np.ones(2))
  assert any(np.allclose(copy, expected) for copy in moved)


def test_copies_are_on_workers_and_the_centre_on_a_server(elastic):
  _, records = elastic
  jobs = ('/job:chief', '/job:worker', '/job:worker')
  for job, record in zip(jobs, records):
    assert record['devices']['w'].startswith(f'{job}/')
    center = record['devices']['centre of w']
    assert center.startswith('/job:ps/')


def test_elastic_checkpoint_evaluation_and_export_are_of_the_centre(elastic):
  directory, records = elastic
  _check_start(records)
  values = _checkpoint(directory / 'model')
  assert sorted(values) == [
      'clipped', 'clipped/Momentum', 'global_step', 'w', 'w/Momentum']
  # The chief's Momentum, without momentum, holds the last gradient.
  np.testing.assert_array_equal(values['w/Momentum'], [1.0, 1.0])
  _check_evaluation_and_export(directory)


def test_a_step_that_others_have_overtaken_is_dropped(dropping):
  """While it was under way the others made 6 steps; 4 are allowed."""
  _, records = dropping
  late = dict(zip(WORKERS, records))['worker-0']['values']
  assert [(seen['num_applied'], seen['num_dropped']) for seen in late[:2]] == [
      (0, 0), (0, 1)]


def test_values_are_those_of_the_applied_steps_and_within_the_bound(dropping):
  directory, records = dropping
  applied, dropped = (
      sum(record['values'][-1][name] for record in records)
      for name in ('num_applied', 'num_dropped'))
  values = _checkpoint(directory / 'model')
  assert MAX_STEPS <= applied <= MOST_APPLIED
  assert values['global_step'] == applied
  assert values['stale_counter'] == dropped >= 1
  np.testing.assert_allclose(values['w'], 1 - RATE * applied)
  # From [1, 1] towards [-1, -1] without end: it stays where the bound is.
  np.testing.assert_allclose(values['clipped'], [-3 / 2**.5] * 2, rtol=1e-6)
  assert sorted(values) == [
      'clipped', 'clipped/Momentum', 'global_step', 'stale_counter', 'w',
      'w/Momentum']


def test_variables_are_on_servers_and_counters_on_their_worker(dropping):
  directory, records = dropping
  _check_start(records)
  for name, record in zip(WORKERS, records):
    for variable, device in record['devices'].items():
      counts = variable.endswith(('num_applied', 'num_dropped'))
      job = name.replace('-', '/task:') if counts else 'ps'
      assert device.startswith(f'/job:{job}'), (variable, device)
  _check_evaluation_and_export(directory)
