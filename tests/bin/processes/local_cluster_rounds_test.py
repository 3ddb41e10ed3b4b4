# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rounds of a cluster, in which its callers wait."""

import os
import signal
import sys
import threading
import time

import pytest

from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config

_LIMIT = 60


def test_a_round_has_the_jobs_that_run(tmp_path):
  codes = {'worker': 'import time; time.sleep(120)', 'ps': 'pass'}
  with local_cluster.LocalCluster(tmp_path) as cluster:
    _, ps = (cluster.start(cluster_config.Task(job, 0),
                           [sys.executable, '-c', code], {})
             for job, code in codes.items())
    assert next(cluster.rounds()) >= {'worker'}
    assert ps.wait(_LIMIT)
    assert next(cluster.rounds()) == {'worker'}
    cluster.end()
    assert list(cluster.rounds()) == [set()]


@pytest.mark.timeout(60)
def test_a_signal_ends_the_wait_for_parameter_servers(tmp_path):
  with local_cluster.LocalCluster(tmp_path) as cluster:
    cluster.start(cluster_config.Task('ps', 0), ['sleep', '120'], {})
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert not cluster.wait_for_ps(110)


def test_a_restart_that_waits_for_its_log_is_told_once(tmp_path):
  told = []
  with local_cluster.LocalCluster(
      tmp_path / 'logs', policy=restarts.RestartPolicy(
          restarts.parse(restarts.ALWAYS)),
      on_restart=lambda role, delay: told.append((role.reasons[-1], delay))
  ) as cluster:
    role = cluster.start(cluster_config.Task('ps', 0), ['false'], {})
    (tmp_path / 'logs').rename(tmp_path / 'away')
    deadline = time.monotonic() + _LIMIT
    while len(told) < 2 and time.monotonic() < deadline:
      cluster.check()
    role.restart_at = time.monotonic()
    cluster.check()
    (tmp_path / 'away').rename(tmp_path / 'logs')
  assert told == [
      ('ended with status 1', 0.0),
      (f'its log {role.log_path} cannot be written: No such file or directory',
       1.0)]
