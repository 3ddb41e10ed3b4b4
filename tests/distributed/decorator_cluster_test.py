# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decorated model_fn in processes: chief, 2 workers, 2 ps, evaluator.

The workers run as they like. What holds for every order of their steps is
checked with the values that each recorded.
"""

import json
import os
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import launch_lib

PROGRAM = pathlib.Path(__file__).with_name('decorator_program.py')
RATE = 0.5
MOVING_RATE = 0.25
# TensorFlow's own wait is 30 s; this much is for a loaded machine.
LATEST_START_SECONDS = 20


@pytest.fixture(scope='module', name='run')
def _run(tmp_path_factory):
  """What one run of the cluster left behind: the directory and the records."""
  directory = tmp_path_factory.mktemp('run')
  root = str(PROGRAM.parents[2])
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('PYTHONPATH', os.pathsep.join(
        [root, os.environ.get('PYTHONPATH', '')]))
    launch_lib.launch(launch_lib.LaunchOptions(
        command=(sys.executable, str(PROGRAM), str(directory)),
        logs_dir=str(directory / 'logs'), workers=2, ps=2, evaluator=True))
  return directory, [json.loads((directory / f'{name}.json').read_text())
                     for name in ('chief-0', 'worker-0', 'worker-1')]


def _checkpoint(directory):
  checkpoint = tf.train.load_checkpoint(str(directory))
  return {name: checkpoint.get_tensor(name)
          for name in checkpoint.get_variable_to_shape_map()}


@pytest.mark.distributed
def test_centre_is_start_plus_all_differences(run):
  _, records = run
  center, communications = np.ones(2), 0
  for record in records:
    copies = np.array(record['copies'])
    # Each step takes RATE off; the rest of a change went into the centre.
    differences = copies[:-1] - RATE - copies[1:]
    exchanged = np.abs(differences).max(axis=1, initial=0) > 1e-6
    assert not exchanged[0::2].any(), 'an exchange in an odd step'
    communications += len(exchanged[1::2])
    center += differences.sum(axis=0)
  np.testing.assert_allclose(records[0]['center'], center, rtol=1e-4)
  assert records[0]['global_step'] == communications >= 40


@pytest.mark.distributed
def test_first_communication_of_the_first_worker_is_the_formula(run):
  """Whoever communicates first has begun where the centre is then."""
  _, records = run
  first = np.ones(2) - 2 * RATE
  moved = [np.array(record['copies'][2]) for record in records
           if len(record['copies']) > 2]
  expected = first - MOVING_RATE * (first - np.ones(2))
  assert any(np.allclose(copy, expected) for copy in moved)


@pytest.mark.distributed
def test_copies_are_on_workers_and_the_centre_on_a_server(run):
  _, records = run
  copies = [record['devices']['copy'] for record in records]
  assert [c.split('/task:')[0] for c in copies] == [
      '/job:chief', '/job:worker', '/job:worker']
  for record in records:
    assert record['devices']['center'].startswith('/job:ps/')


@pytest.mark.distributed
def test_no_worker_waits_for_the_chief(run):
  _, records = run
  starts = [r['first_step'] for r in records if r['first_step']]
  assert records[0]['first_step'] is not None
  assert max(starts) - records[0]['first_step'] < LATEST_START_SECONDS


@pytest.mark.distributed
def test_checkpoint_evaluation_and_export_are_of_the_centre(run):
  directory, _ = run
  values = _checkpoint(directory / 'model')
  assert sorted(values) == ['global_step', 'w', 'w/Momentum']
  # The chief's Momentum, without momentum, holds the last gradient.
  np.testing.assert_array_equal(values['w/Momentum'], [1.0, 1.0])
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
