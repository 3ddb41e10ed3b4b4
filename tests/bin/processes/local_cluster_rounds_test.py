# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rounds of a cluster, in which its callers wait."""

import sys

from tfplugin.bin.processes import local_cluster
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
