# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the names of parameter servers."""

import json

import pytest

from tfplugin.faults import host_names

_BEFORE = '127.0.0.1 localhost\n\n10.0.0.1 a b # comment\n'
_CLUSTER = {'ps': ['127.0.0.1:5', '127.0.0.1:6'], 'chief': ['127.0.0.1:7']}
_FAULT = 'new_address ps:1 at step 3; kill ps:0 at step 4'


@pytest.fixture(name='hosts')
def fixture_hosts(monkeypatch, tmp_path):
  path = tmp_path / 'hosts'
  path.write_text(_BEFORE)
  monkeypatch.setattr(host_names, 'HOSTS', str(path))
  return path


def test_a_name_comes_moves_and_goes(hosts, monkeypatch):
  name = 'ps-1-6.tfplugin.test'
  with host_names.given(_CLUSTER, _FAULT) as cluster:
    assert cluster == {**_CLUSTER, 'ps': ['127.0.0.1:5', f'{name}:6']}
    assert hosts.read_text() == f'{_BEFORE}127.0.0.1 {name}\n'
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': cluster, 'task': {'type': 'chief', 'index': 0}}))
    for address in ('127.0.0.2', '127.0.0.3'):
      host_names.move('ps:1')
      assert hosts.read_text() == f'{_BEFORE}{address} {name}\n'
  assert hosts.read_text() == _BEFORE


def test_without_the_fault_nothing_is_named(hosts):
  hosts.unlink()
  for faults in ('', 'kill ps:0 at step 4'):
    for before in (_CLUSTER, {'worker': {3: '127.0.0.1:5'}}):
      with host_names.given(before, faults) as cluster:
        assert cluster == before


def test_a_file_that_cannot_be_written_is_named(hosts):
  hosts.unlink()
  with pytest.raises(ValueError, match=f'able to write {hosts}.*No such file'):
    with host_names.given(_CLUSTER, _FAULT):
      pass


def test_a_task_that_others_reach_is_refused(hosts):
  with pytest.raises(ValueError, match='Received: ps:1 at 10.0.0.1. Leave out'):
    with host_names.given({'ps': ['h:1', '10.0.0.1:2']}, _FAULT):
      pass
  assert hosts.read_text() == _BEFORE
