# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.distribute.shards.cross_shard_extended, in a cluster."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config

_PROGRAM = pathlib.Path(__file__).with_name('cross_shard_program.py')
_ROOT = str(_PROGRAM.parents[3])
_TIME_LIMIT_SECS = 120

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]


@pytest.fixture(name='engine', params=['tensorflow', 'horovod'])
def _engine(request):
  if request.param == 'horovod' and not importlib.util.find_spec('horovod'):
    pytest.skip('Horovod is not installed: make test-horovod')
  return request.param


def _run_cluster(*arguments, engine='tensorflow', workers=1, evaluator=False):
  """Runs chief, workers and evaluator; returns what they print last."""
  cluster = ports.make_cluster(workers, num_ps=0)
  port, = ports.pick_free(1)
  tasks = [('chief', 0), *(('worker', index) for index in range(workers))]
  tasks += [('evaluator', 0)] * evaluator
  processes = []
  try:
    for job, index in tasks:
      environment = {
          **os.environ, 'PYTHONPATH': _ROOT,
          cluster_config.HOROVOD_PORT_VARIABLE: str(port),
          'TF_CONFIG': json.dumps(
              {'cluster': cluster, 'task': {'type': job, 'index': index}})}
      processes.append(subprocess.Popen(
          [sys.executable, str(_PROGRAM), *arguments, engine], env=environment,
          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [p.communicate(timeout=_TIME_LIMIT_SECS) for p in processes]
  finally:
    for process in processes:
      process.kill()
      process.wait()
  for process, (_, log) in zip(processes, outputs):
    assert process.returncode == 0, log[-3000:]
  results = [json.loads(out.splitlines()[-1]) for out, _ in outputs]
  for (job, _), result in zip(tasks, results):
    assert result.pop('processes_of_horovod') == (
        workers + 1 if engine == 'horovod' and job != 'evaluator' else 1)
  return results


@pytest.mark.parametrize('groups, expected', [
    # Gradients 1 and 2; velocities g, then 1.5 g; MEAN.
    (None, [100 - 2.5 * 1.5] * 2),
    ([[1], [0]], [100 - 2.5, 100 - 2.5 * 2]),
])
def test_strategy_run_on_two_workers(groups, expected, engine):
  results = _run_cluster('run', '', json.dumps(groups), engine=engine)
  assert [r['shards'] for r in results] == [2, 2]
  assert [r['weight'] for r in results] == expected


def _trained(directory):
  """The checkpoint's values, by name."""
  checkpoint = tf.train.load_checkpoint(str(directory))
  return {name: checkpoint.get_tensor(name)
          for name in checkpoint.get_variable_to_shape_map()}


_NAMES = {'weight', 'weight/Momentum', 'table', 'table/Momentum', 'global_step'}


@pytest.mark.parametrize('mode', ['v1', 'summed'])
def test_train_and_evaluate_on_two_workers(mode, tmp_path, engine):
  """Also if the workers sum their gradients by hand."""
  results = _run_cluster(mode, str(tmp_path), 'null', engine=engine)
  values = _trained(tmp_path)
  assert [r['shards'] for r in results] == [2, 2]
  assert set(values) == _NAMES and values['global_step'] == 2
  assert values['weight'] == 100 - 2.5 * 1.5
  # Row 1 by the chief, row 2 by the worker: gradients 1, halved.
  np.testing.assert_array_equal(values['table'][:, 0], [0, -1.25, -1.25, 0])


def test_train_and_evaluate_on_three_workers_and_an_evaluator(tmp_path, engine):
  *results, _ = _run_cluster('v2', str(tmp_path), 'null', workers=2,
                             evaluator=True, engine=engine)
  values = _trained(tmp_path)
  assert [r['shards'] for r in results] == [3, 3, 3]
  assert set(values) == _NAMES and values['global_step'] == 2
  assert values['weight'] == 100 - 2.5 * 2.0
  table = [0, *[-2.5 / 3] * 3]
  np.testing.assert_allclose(values['table'][:, 0], table, rtol=1e-6)
  for result in results:
    np.testing.assert_allclose(result['table'], table, rtol=1e-6)
  # The evaluator has no strategy: its row is that of the first worker.
  (events,) = (tmp_path / 'eval').glob('events*')
  losses = {event.step: value.simple_value
            for event in tf.compat.v1.train.summary_iterator(str(events))
            for value in event.summary.value if value.tag == 'loss'}
  assert losses[2] == pytest.approx(95.0 - 2.5 / 3)


def test_clipping_over_multi_worker_mirrored_strategy(tmp_path):
  results = _run_cluster('clipping', str(tmp_path), 'null')
  values = _trained(tmp_path)
  assert [r['shards'] for r in results] == [2, 2]
  assert set(values) == _NAMES and values['global_step'] == 2
  assert values['weight'] == 100 - 2.5 * 1.5
  # As without clipping after one step, -0.5; after two it would be -1.25.
  for table in values['table'][:, 0], *(r['table'] for r in results):
    np.testing.assert_allclose(table, [0, -0.75, -0.75, 0], rtol=1e-6)
