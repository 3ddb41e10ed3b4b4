# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies in a cluster of processes: chief, 2 workers, 2 ps, evaluator.

The workers run as they like, so no trajectory is known in advance. The values
that each recorded are checked for whatever holds in every order of their steps.
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

PROGRAM = pathlib.Path(__file__).with_name('strategy_program.py')
RATE = 0.5
WORKERS = ('chief-0', 'worker-0', 'worker-1')
# TensorFlow's own wait is 30 s; this much is for a loaded machine.
LATEST_START_SECONDS = 20
# A worker stops after a step that read 39 or more. When that is reached, each
# is in a step that may have read less, and makes one more.
MAX_STEPS = 40
MOST_APPLIED = MAX_STEPS - 2 + 2 * len(WORKERS)


def run(strategy, directory, monkeypatch):
  """Runs the cluster; returns the workers' records and the checkpoint."""
  root = str(PROGRAM.parents[2])
  monkeypatch.setenv(
      'PYTHONPATH', os.pathsep.join([root, os.environ.get('PYTHONPATH', '')]))
  launch_lib.launch(launch_options.LaunchOptions(
      command=(sys.executable, str(PROGRAM), strategy, str(directory)),
      logs_dir=str(directory / 'logs'), workers=2, ps=2, evaluator=True))
  records = [json.loads((directory / f'{name}.json').read_text())
             for name in WORKERS]
  checkpoint = tf.train.load_checkpoint(str(directory / 'model'))
  values = {name: checkpoint.get_tensor(name)
            for name in checkpoint.get_variable_to_shape_map()}
  check_start(records)
  check_evaluator(directory, values)
  return records, values


def check_start(records):
  """Every worker has trained, and none has waited for TensorFlow's 30 s."""
  first_steps = [r['first_step'] for r in records]
  assert max(first_steps) - first_steps[0] < LATEST_START_SECONDS


def check_evaluator(directory, values):
  """The evaluator, without a strategy, saw what the checkpoint holds."""
  seen = {}
  for path in (directory / 'model' / 'eval').glob('events*'):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        if value.tag == 'w':
          seen[event.step] = value.simple_value
  assert seen[int(values['global_step'])] == pytest.approx(values['w'][0])


def test_elastic_centre_is_start_plus_all_differences(tmp_path, monkeypatch):
  records, values = run('elastic', tmp_path, monkeypatch)
  center, communications = np.ones(2), 0
  for record in records:
    copies = np.array([value for value, _ in record['values']])
    # Each step takes RATE off; the rest of a change went into the centre.
    differences = copies[:-1] - RATE - copies[1:]
    differences[:1] = 0  # Before its first step a copy may start anew.
    exchanged = np.abs(differences).max(axis=1, initial=0) > 1e-6
    assert not exchanged[0::2].any(), 'an exchange in an odd step'
    communications += len(exchanged[1::2])
    center += differences.sum(axis=0)
  np.testing.assert_allclose(values['w'], center, rtol=1e-4)
  assert sorted(values) == ['clipped', 'global_step', 'w']
  assert values['global_step'] == communications >= MAX_STEPS


def test_drop_stale_applies_as_often_as_it_counts_and_clips(
    tmp_path, monkeypatch):
  records, values = run('drop_stale_and_clip', tmp_path, monkeypatch)
  applied = sum(record['values'][-1][1] for record in records)
  assert values['global_step'] == applied
  assert MAX_STEPS <= applied <= MOST_APPLIED
  np.testing.assert_allclose(values['w'], 1 - RATE * applied)
  # From [1, 1] towards [-1, -1] without end, within the bound; not on it where
  # two workers have clipped at the same time, each by its own reading.
  assert (values['clipped'] < 0).all()
  assert np.linalg.norm(values['clipped']) <= 3 * (1 + 1e-6)
  assert sorted(values) == ['clipped', 'global_step', 'w']
