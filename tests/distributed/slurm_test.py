# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-launch below a real Slurm: its controller and a node, here."""

# BUILD data: //:sources

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config

_MISSING = [name for name in ('slurmctld', 'slurmd', 'srun', 'sinfo')
            if shutil.which(name) is None]
pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(bool(_MISSING), reason='Not installed: '
                       f'{", ".join(_MISSING)}. `apt-get install '
                       'slurmctld slurmd slurm-client` has them.')]

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_START_SECS = 60
_RUN_SECS = 200
# One node that takes itself for one of eight CPUs. Nobody asks who anybody is:
# all of it is on loopback.
_CONFIG = '''
ClusterName=tfplugin
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={directory}
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/controller.pid
SlurmdPidFile={directory}/node.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
'''
# The worker comes to the chief, at the address that it knows of it.
_PROGRAM = textwrap.dedent('''
    import json, os, socket, time
    text = os.environ['TF_CONFIG']
    config = json.loads(text)
    host, _, port = config['cluster']['chief'][0].rpartition(':')
    if config['task']['type'] == 'chief':
      with socket.create_server((host, int(port))) as server:
        server.settimeout(120)
        # Launches look whether the port is open, and say nothing.
        while server.accept()[0].recv(6) != b'worker':
          pass
    if config['task']['type'] == 'worker':
      deadline = time.monotonic() + 120
      while True:
        try:
          with socket.create_connection((host, int(port)), timeout=5) as chief:
            chief.sendall(b'worker')
          break
        except OSError:
          assert time.monotonic() < deadline
          time.sleep(0.1)
    print('configured', text, flush=True)
    ''')


@pytest.fixture
def slurm(tmp_path, monkeypatch):
  """The directory of a Slurm that runs here as long as the test does."""
  directory = tmp_path / 'slurm'
  directory.mkdir()
  path = directory / 'slurm.conf'
  path.write_text(_CONFIG.format(
      host=socket.gethostname().partition('.')[0], ports=ports.pick_free(2),
      user=pwd.getpwuid(os.getuid()).pw_name, directory=directory))
  monkeypatch.setenv('SLURM_CONF', str(path))
  with contextlib.ExitStack() as stack:
    for command in (['slurmctld', '-D'], ['slurmd', '-D', '-N', 'localhost']):
      log = stack.enter_context(open(directory / f'{command[0]}.log', 'w'))
      process = stack.enter_context(subprocess.Popen(
          command, stdout=log, stderr=subprocess.STDOUT))
      stack.callback(_end, process)
    deadline = time.monotonic() + _START_SECS
    while 'idle' not in _output('sinfo', '--noheader'):
      assert time.monotonic() < deadline, _logs(directory)
      time.sleep(0.2)
    yield directory


def _end(process):
  process.terminate()
  try:
    process.wait(10)
  except subprocess.TimeoutExpired:
    process.kill()


def _output(*command):
  return subprocess.run(command, capture_output=True, text=True,
                        timeout=_START_SECS).stdout


def _logs(directory):
  return '\n'.join(path.read_text() for path in directory.glob('*.log'))


def test_each_process_of_a_step_starts_its_task(tmp_path, slurm):
  program = tmp_path / 'program.py'
  program.write_text(_PROGRAM)
  port = next(first for first in ports.pick_free(20)
              if all(ports.is_free(first + i) for i in range(3)))
  # TensorFlow's import takes its time, four at once on a small machine.
  ended = subprocess.run(
      ['srun', '--ntasks=4', '--immediate=30', sys.executable, '-m',
       'tfplugin.bin.launch', '--slurm', '--ps=1', '--evaluator',
       f'--port={port}',
       f'--logs_dir={tmp_path}/logs', '--', sys.executable, str(program)],
      cwd=_ROOT, capture_output=True, text=True, timeout=_RUN_SECS)
  assert ended.returncode == 0, ended.stdout + ended.stderr + _logs(slurm)
  told = dict(re.findall(r'^(\S+)\| configured (.*)$', ended.stdout, re.M))
  found = {name: cluster_config.decode(text) for name, text in told.items()}
  cluster = {job: [f'localhost:{port + number}']
             for number, job in enumerate(('ps', 'chief', 'worker'))}
  assert found == {task.name: (cluster, task) for task in
                   cluster_config.tasks_of(cluster, True)}
  for name in told:
    job, _, index = name.partition(':')
    assert (tmp_path / 'logs' / f'summary-{job}-{index}.json').exists()


def test_a_number_of_tasks_that_does_not_fit_is_refused(slurm):
  ended = subprocess.run(
      ['srun', '--ntasks=1', '--immediate=30', sys.executable, '-m',
       'tfplugin.bin.launch', '--slurm', '--ps=1', '--', 'true'], cwd=_ROOT,
      capture_output=True, text=True, timeout=_RUN_SECS)
  assert ended.returncode == 1
  assert 'Call srun with --ntasks=2.' in ended.stderr
