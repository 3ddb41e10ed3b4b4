# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what Horovod's processes are and sum, in a real horovodrun."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute.shards import horovod_processes

_PROGRAM = pathlib.Path(__file__).with_name('horovod_program.py')
_ROOT = str(_PROGRAM.parents[3])
_TIME_LIMIT_SECS = 120
_GROUPS = [[0, 2], [3, 1]]


def _run(number, mode, directory, groups=None):
  """Runs the program in so many processes; returns what each got."""
  pytest.importorskip(
      'horovod', reason='Horovod is not installed: make test-horovod')
  done = subprocess.run(
      [sys.executable, '-m', 'horovod.runner.launch', '-np', str(number),
       '--gloo', '--network-interfaces', 'lo', sys.executable, str(_PROGRAM),
       mode, json.dumps(groups), str(directory)],
      env={**os.environ, 'PYTHONPATH': _ROOT}, stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT, text=True, timeout=_TIME_LIMIT_SECS,
      check=False)
  assert done.returncode == 0, done.stdout[-3000:]
  return [json.loads((directory / f'{rank}.json').read_text())
          for rank in range(number)]


def _expected(number, groups):
  """Weight and table of each process after two steps, by hand.

  Momentum 0.5 with rate 1: the second step goes 1.5 times as far.
  """
  found = []
  for rank in range(number):
    group = next(group for group in groups or [range(number)] if rank in group)
    table = np.zeros(4)
    for member in group:
      table[member] -= 2.5 * 2 / len(group)
    found.append((100 - 2.5 * np.mean([member + 1 for member in group]), table))
  return found


@pytest.mark.distributed
@pytest.mark.parametrize('number, groups', ((2, None), (4, _GROUPS)))
@pytest.mark.parametrize('mode', ('graph', 'function'))
def test_sums_over_processes(tmp_path, mode, number, groups):
  found = _run(number, mode, tmp_path, groups)
  for rank, (weight, table) in enumerate(_expected(number, groups)):
    assert found[rank][0] == weight
    np.testing.assert_allclose(found[rank][1], table, rtol=1e-6)
    if mode == 'graph':
      group = next(group for group in groups or [range(number)]
                   if rank in group)
      assert found[rank][2] == sum((member + 1) ** 2 for member in group)
      # Each process's sum has this one's x in it.
      assert found[rank][3] == 2 * (rank + 1) * len(group)


@pytest.mark.distributed
def test_an_estimator_in_each_process(tmp_path):
  found = _run(2, 'estimator', tmp_path)
  for (weight, table), expected in zip(found, _expected(2, None)):
    assert weight == expected[0]
    np.testing.assert_allclose(table, expected[1], rtol=1e-6)


@pytest.mark.distributed
def test_replicas_in_several_processes_are_refused(tmp_path):
  for message in _run(2, 'replicas', tmp_path):
    assert '2 replicas of MirroredStrategy, and 2 processes' in message


def _task(index, ports_=(2222, 2223), host='127.0.0.1'):
  return cluster_task.ClusterTask(
      tf.train.ClusterSpec({'worker': [f'{host}:{port}' for port in ports_]}),
      'worker', index)


def test_without_horovod_there_is_one():
  assert horovod_processes.number() == 1


def test_what_is_not_installed_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, 'horovod', None)
  with pytest.raises(ImportError, match='`engine` must be one that is installed'
                     '.*pip install --no-build-isolation horovod'):
    horovod_processes.join(_task(0))


class _Horovod:
  """As much of `horovod.tensorflow` as `join` calls."""

  def __init__(self, rank, size):
    self._rank_and_size = rank, size
    self.environment = None

  def is_initialized(self):
    return self.environment is not None

  def init(self):
    self.environment = dict(os.environ)

  def rank(self):
    return self._rank_and_size[0]

  def size(self):
    return self._rank_and_size[1]


def _fake(monkeypatch, rank, size):
  horovod = _Horovod(rank, size)
  package = type(sys)('horovod')
  package.tensorflow = horovod
  monkeypatch.setitem(sys.modules, 'horovod', package)
  monkeypatch.setitem(sys.modules, 'horovod.tensorflow', horovod)
  return horovod


def test_a_port_is_a_number(monkeypatch):
  _fake(monkeypatch, 0, 2)
  monkeypatch.setenv(cluster_config.HOROVOD_PORT_VARIABLE, 'a port')
  with pytest.raises(ValueError, match='must be a free port.*Received'):
    horovod_processes.join(_task(0))


def test_without_a_variable_all_take_the_port_after_the_last(monkeypatch):
  """On several machines nobody else can choose one for all."""
  monkeypatch.delenv(cluster_config.HOROVOD_PORT_VARIABLE, raising=False)
  served, asked = [], []
  monkeypatch.setattr(horovod_processes, '_serve',
                      lambda host, port, size: served.append((host, port)))
  monkeypatch.setattr(horovod_processes, '_wait_for',
                      lambda who, name, host, port: asked.append((host, port)))
  for index in range(2):
    horovod = _fake(monkeypatch, index, 2)
    horovod_processes.join(_task(index, (2230, 2223), 'a.host'))
    assert horovod.environment[cluster_config.HOROVOD_PORT_VARIABLE] == '2231'
  assert (served, asked) == ([('', 2231)], [('a.host', 2231)])


def test_an_occupied_port_is_named(monkeypatch):
  pytest.importorskip('horovod')
  monkeypatch.delenv('HOROVOD_RANK', raising=False)
  with socket.create_server(('127.0.0.1', 0)) as server:
    port = str(server.getsockname()[1])
    monkeypatch.setenv(cluster_config.HOROVOD_PORT_VARIABLE, port)
    with pytest.raises(RuntimeError, match=f'must be free. Received: {port} .*'
                       'to another port, the same in all'):
      horovod_processes.join(_task(0))


def test_the_first_worker_needs_a_name_or_ipv4(monkeypatch):
  _fake(monkeypatch, 0, 2)
  with pytest.raises(ValueError, match=r"Received: '\[::1\]'. Use its name"):
    horovod_processes.join(_task(0, host='[::1]'))


def test_another_rank_than_that_of_the_cluster_is_refused(monkeypatch):
  _fake(monkeypatch, 1, 2)
  monkeypatch.setenv('HOROVOD_RANK', '1')
  with pytest.raises(ValueError, match='worker:0 is number 0 of 2, and has '
                     'rank 1 of 2'):
    horovod_processes.join(_task(0))


def test_a_task_that_does_not_serve_is_named(monkeypatch):
  _fake(monkeypatch, 1, 2)
  monkeypatch.setenv(cluster_config.HOROVOD_PORT_VARIABLE,
                     str(ports.pick_free(1)[0]))
  monkeypatch.setattr(horovod_processes, '_LIMIT_SECS', 0.0)
  with pytest.raises(TimeoutError, match='worker:1 waited 0 s for worker:0 to '
                     'serve on port'):
    horovod_processes.join(_task(1))


def test_a_task_that_waits_leaves_the_processor_to_others(monkeypatch):
  _fake(monkeypatch, 1, 2)
  monkeypatch.setenv(cluster_config.HOROVOD_PORT_VARIABLE,
                     str(ports.pick_free(1)[0]))
  monkeypatch.setattr(horovod_processes, '_LIMIT_SECS', 0.5)
  attempts = []

  def refuse(*args, **kwargs):
    attempts.append((args, kwargs))
    raise ConnectionRefusedError('nobody listens')

  monkeypatch.setattr(socket, 'create_connection', refuse)
  with pytest.raises(TimeoutError, match='nobody listens'):
    horovod_processes.join(_task(1))
  assert len(attempts) <= 7  # A tenth of a second, or more, between two.


def test_the_environment_is_as_before(monkeypatch):
  horovod = _fake(monkeypatch, 0, 1)
  monkeypatch.setenv('HOROVOD_RANK', '0')
  monkeypatch.setenv('HOROVOD_GLOO_IFACE', 'lo')
  before = dict(os.environ)
  horovod_processes.join(_task(0, (2222,)))
  assert horovod.environment == before == dict(os.environ)


def test_a_variable_that_is_gone_already_is_no_error(monkeypatch):
  monkeypatch.setenv('HOROVOD_RANK', '7')
  before = dict(os.environ)
  with horovod_processes._environment(
      {'HOROVOD_RANK': '0', 'HOROVOD_SIZE': '1'}):
    del os.environ['HOROVOD_SIZE']
  assert dict(os.environ) == before
