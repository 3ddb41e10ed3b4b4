# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the variables of a role's environment."""

import sys

import pytest

from tfplugin.bin.processes import local_cluster
from tfplugin.distribute import cluster_config

CHIEF = cluster_config.Task('chief', 0)
_LIMIT_SECS = 30.0


def test_a_role_gets_its_tf_config_and_its_log(tmp_path):
  addresses = {'chief': ['127.0.0.1:1'], 'ps': ['127.0.0.1:2']}
  with local_cluster.LocalCluster(tmp_path / 'logs') as cluster:
    role = cluster.start(
        CHIEF,
        [sys.executable, '-c', 'import os; print(os.environ["TF_CONFIG"])'],
        addresses)
    role.wait(_LIMIT_SECS)
  assert role.status == 0
  log = (tmp_path / 'logs' / 'chief-0.log').read_text()
  assert cluster_config.decode(log) == (addresses, CHIEF)


@pytest.mark.parametrize('other, has_port', [
    ('127.0.0.1', True), ('127.0.0.2', False)])
def test_only_one_machine_chooses_a_port_for_horovod(
    tmp_path, other, has_port, monkeypatch):
  """Launchers on several machines would choose different ones."""
  name = cluster_config.HOROVOD_PORT_VARIABLE
  monkeypatch.delenv(name, raising=False)
  with local_cluster.LocalCluster(tmp_path) as cluster:
    role = cluster.start(
        CHIEF, [sys.executable, '-c',
                f'import os; print(os.environ.get({name!r}))'],
        {'chief': ['127.0.0.1:1'], 'worker': [f'{other}:2']})
    role.wait(_LIMIT_SECS)
  log = (tmp_path / 'chief-0.log').read_text().strip()
  assert log.isdecimal() is has_port, log
