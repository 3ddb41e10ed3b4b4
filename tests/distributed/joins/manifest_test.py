# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pods of a manifest as processes, whose workers are scaled as pods are.

There is no cluster of Kubernetes: names become addresses of this machine.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.distributed.joins import joins_program
from tfplugin.bin.launches import launch_options
from tfplugin.bin.launches import manifests
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import ports

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]
LIMIT_SECONDS = 120


def _documents(directory):
  options = launch_options.LaunchOptions(
      (sys.executable, joins_program.__file__, 'plain', str(directory), '0.02'),
      workers=1, max_workers=2, ps=1, manifest='kubernetes',
      image='i', restart='on_failure', run_name='run')
  return manifests.kubernetes(task_settings.make_starts(
      options.layout().tasks, options.command, options.task_settings(), ''),
                              options.pods())


class Pods:
  """The pods of documents."""

  def __init__(self, documents):
    self._specs = {d['metadata']['name']: d['spec'] for d in documents
                   if d['kind'] in ('Job', 'Deployment')}
    self._addresses = {f'{name}-0.run:2222': f'127.0.0.1:{port}' for name, port
                       in zip(self._specs, ports.pick_free(len(self._specs)))}
    self._running = {}

  def scale(self, name, number):
    """Starts pods, or ends the oldest ones, as `kubectl scale` may do."""
    running = self._running.setdefault(name, [])
    container, = self._specs[name]['template']['spec']['containers']
    while len(running) < number:
      running.append(subprocess.Popen(
          self._command(container), env={**os.environ, **self._env(container)}))
    for pod in running[:len(running) - number]:
      pod.send_signal(signal.SIGTERM)
      pod.wait(LIMIT_SECONDS)
      running.remove(pod)

  def wait(self, name):
    return [pod.wait(LIMIT_SECONDS) for pod in self._running[name]]

  def close(self):
    for pod in sum(self._running.values(), []):
      pod.kill()
      pod.wait()

  def _command(self, container):
    command = list(map(self._local, container['command']))
    if command[0] == 'tfplugin-launch':
      command[:1] = [sys.executable, '-m', 'tfplugin.bin.launch']
    return command

  def _env(self, container):
    root = str(pathlib.Path(joins_program.__file__).parents[3])
    return {'PYTHONPATH': os.pathsep.join(
        [root, os.environ.get('PYTHONPATH', '')]),
            **{one['name']: self._local(one['value']).replace(
                '$(TASK_INDEX)', '0') for one in container['env']
               if 'value' in one}}

  def _local(self, text):
    for name, address in self._addresses.items():
      text = text.replace(name, address)
    return text


def _wait(look):
  deadline = time.monotonic() + LIMIT_SECONDS
  while not look():
    assert time.monotonic() < deadline
    time.sleep(0.1)


def _steps(directory):
  return {record['task']: len(record['steps'])
          for record in joins_program.read_records(directory)}


@pytest.mark.sampled(4)
@pytest.mark.timeout(400)
def test_the_workers_of_a_manifest_are_scaled(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pods = Pods(_documents(tmp_path))
  try:
    pods.scale('run-ps', 1)
    pods.scale('run-chief', 1)
    _wait(lambda: 'chief-0' in _steps(tmp_path))
    pods.scale('run-worker', 2)
    _wait(lambda: len(_steps(tmp_path)) == 3)
    pods.scale('run-worker', 1)
    pods.scale('run-worker', 2)
    _wait(lambda: len(_steps(tmp_path)) == 4)
    (tmp_path / 'end').touch()
    assert pods.wait('run-chief') == [0]
    assert pods.wait('run-worker') == [0, 0]
  finally:
    pods.close()
  checkpoint = tf.train.load_checkpoint(str(tmp_path / 'model'))
  steps = _steps(tmp_path)
  assert sorted(steps) == ['chief-0', 'worker-0', 'worker-1', 'worker-2']
  assert checkpoint.get_tensor('global_step') == sum(steps.values())
  np.testing.assert_array_equal(checkpoint.get_tensor('w'),
                                [sum(steps.values())] * 2)
