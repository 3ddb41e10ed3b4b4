# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two processes that train in step: the death of one is the end of the other.

TensorFlow's survivor makes a new session each second, without end.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config
from tfplugin.hooks.shutdown import lost_peers

PROGRAM = pathlib.Path(__file__).with_name('lost_peer_program.py')
LIMIT_SECS = 120.0


@pytest.mark.distributed
@pytest.mark.usefixtures('forking')
@pytest.mark.parametrize('engine', ('tensorflow', 'horovod'))
def test_the_survivor_ends_with_the_name_and_a_status_of_its_own(
    tmp_path, engine):
  if engine == 'horovod':
    pytest.importorskip(
        'horovod', reason='Horovod is not installed: make test-horovod')
  cluster = {'worker': ports.make_cluster(2, 0)['worker']}
  port = str(*ports.pick_free(1))
  root = os.pathsep.join([str(PROGRAM.parents[2]),
                          os.environ.get('PYTHONPATH', '')])
  with contextlib.ExitStack() as stack:
    processes = []
    for index in range(2):
      log = stack.enter_context(open(tmp_path / f'{index}.log', 'w'))
      process = stack.enter_context(subprocess.Popen(
          [sys.executable, str(PROGRAM), str(tmp_path), engine], stderr=log,
          env={**os.environ, 'PYTHONPATH': root,
               cluster_config.HOROVOD_PORT_VARIABLE: port,
               'TF_CONFIG': json.dumps({
                   'cluster': cluster,
                   'task': {'type': 'worker', 'index': index}})}))
      stack.callback(process.kill)
      processes.append(process)
    deadline = time.monotonic() + LIMIT_SECS
    while not (tmp_path / 'stepped').exists():
      assert time.monotonic() < deadline
      assert all(process.poll() is None for process in processes)
      time.sleep(0.1)
    processes[0].kill()
    assert processes[1].wait(LIMIT_SECS) == lost_peers.EXIT_STATUS
  text = (tmp_path / '1.log').read_text()
  assert f'worker:0 at {cluster["worker"][0]}' in text
  assert 'Restart all workers together' in text
