# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.distribute.cross_shard_extended, in a cluster."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

_PROGRAM = pathlib.Path(__file__).with_name('cross_shard_program.py')
_ROOT = str(_PROGRAM.parents[2])
_TIME_LIMIT_SECS = 120

pytestmark = pytest.mark.distributed


def _free_ports(count):
  sockets = [socket.socket() for _ in range(count)]
  try:
    for each in sockets:
      each.bind(('localhost', 0))
    return [each.getsockname()[1] for each in sockets]
  finally:
    for each in sockets:
      each.close()


def _run_cluster(*arguments):
  """Runs chief and worker; returns what they print last."""
  ports = _free_ports(2)
  cluster = {'chief': [f'localhost:{ports[0]}'],
             'worker': [f'localhost:{ports[1]}']}
  processes = []
  try:
    for job in cluster:
      environment = {
          **os.environ, 'PYTHONPATH': _ROOT,
          'TF_CONFIG': json.dumps(
              {'cluster': cluster, 'task': {'type': job, 'index': 0}})}
      processes.append(subprocess.Popen(
          [sys.executable, str(_PROGRAM), *arguments], env=environment,
          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [p.communicate(timeout=_TIME_LIMIT_SECS) for p in processes]
  finally:
    for process in processes:
      process.kill()
      process.wait()
  for process, (_, log) in zip(processes, outputs):
    assert process.returncode == 0, log[-3000:]
  return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


@pytest.mark.parametrize('groups, expected', [
    # Gradients 1 and 2; velocities g, then 1.5 g; MEAN.
    (None, [100 - 2.5 * 1.5] * 2),
    ([[1], [0]], [100 - 2.5, 100 - 2.5 * 2]),
])
def test_strategy_run_on_two_workers(groups, expected):
  results = _run_cluster('run', '', json.dumps(groups))
  assert [r['shards'] for r in results] == [2, 2]
  assert [r['weight'] for r in results] == expected


@pytest.mark.parametrize('behavior_name', ['v1', 'v2'])
def test_train_and_evaluate_on_two_workers(behavior_name, tmp_path):
  results = _run_cluster(behavior_name, str(tmp_path), 'null')
  assert [r['shards'] for r in results] == [2, 2]
  checkpoint = tf.train.load_checkpoint(str(tmp_path))
  assert set(checkpoint.get_variable_to_shape_map()) == {
      'weight', 'weight/Momentum', 'table', 'table/Momentum', 'global_step'}
  assert checkpoint.get_tensor('global_step') == 2
  assert checkpoint.get_tensor('weight') == 100 - 2.5 * 1.5
  # Row 1 by the chief, row 2 by the worker: gradients 1, halved.
  np.testing.assert_array_equal(
      checkpoint.get_tensor('table')[:, 0], [0, -1.25, -1.25, 0])
