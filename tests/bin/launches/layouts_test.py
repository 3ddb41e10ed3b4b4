# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of where the tasks of a run are."""

import re
import socket

import pytest

from tfplugin.bin.launches import layouts


def test_tasks_are_dealt_out_alike_on_every_machine():
  hosts = ['a', 'b', 'c']
  found = [layouts.on_hosts(hosts, host, 3, 2, True, 100) for host in hosts]
  # Trained on a, b, c, a in turn; ps on a, b; a port for each task.
  assert all(layout.cluster == {
      'ps': ['a:100', 'b:101'], 'chief': ['a:102'],
      'worker': ['b:103', 'c:104', 'a:105']} for layout in found)
  assert [[task.name for task in layout.own] for layout in found] == [
      ['ps:0', 'chief:0', 'worker:2'], ['ps:1', 'worker:0'],
      ['worker:1', 'evaluator:0']]
  assert [layout.has_chief for layout in found] == [True, False, False]
  assert all(layout.serves for layout in found)
  assert not layouts.on_hosts(hosts, 'c', 3, 2, False).serves
  assert found[0].training_elsewhere == ['worker:0', 'worker:1']
  assert found[2].training_elsewhere == ['chief:0', 'worker:0', 'worker:2']
  assert found[1].hosts == {
      'ps:0': 'a', 'ps:1': 'b', 'chief:0': 'a', 'worker:0': 'b',
      'worker:1': 'c', 'worker:2': 'a', 'evaluator:0': 'c'}


def test_a_machine_without_a_task_is_refused():
  with pytest.raises(ValueError, match='`hosts` must not name more.*, 2. Rece'
                     'ived: a,b,c, where b, c would have no task. Start more'):
    layouts.on_hosts(['a', 'b', 'c'], 'a', 0, 1, False)


@pytest.mark.parametrize('hosts', [['a', 'a'], ['a:1'], ['a', '']])
def test_machines_are_named_once_without_ports(hosts):
  with pytest.raises(ValueError, match='`hosts` must name each machine once'):
    layouts.check_hosts(hosts)
  layouts.check_hosts(['a', 'b.c'])


def test_on_this_machine_all_is_here():
  layout = layouts.on_this_machine(1, 1, True, '127.0.0.2')
  assert layout.own == layout.tasks and not layout.training_elsewhere
  assert layout.has_chief and not layout.hosts and not layout.who
  assert layout.cluster['ps'][0].startswith('127.0.0.2:')


def test_an_occupied_port_is_named():
  with socket.create_server(('127.0.0.1', 0)) as server:
    port = server.getsockname()[1]
    layout = layouts.on_hosts(['a', 'b'], 'b', 1, 1, True, port - 2)
    with pytest.raises(RuntimeError, match=f'port of worker:0 .*b:{port}.*`port'
                       '` on every machine'):
      layout.check_ports()
  layout.check_ports()


@pytest.fixture(autouse=True)
def names(monkeypatch):
  """This machine's names; no other has a known address."""
  monkeypatch.setattr(socket, 'gethostname', lambda: 'b')
  monkeypatch.setattr(socket, 'getfqdn', lambda: 'b.example.org')


@pytest.mark.parametrize('hosts, found', [
    (['a.invalid', 'b', 'c.invalid'], 'b'),
    (['a.invalid', 'b.example.org'], 'b.example.org'),
    (['a.invalid', 'b.other.invalid'], 'b.other.invalid'),
    (['a.invalid', '127.0.0.1'], '127.0.0.1'),
    # A name goes before an address.
    (['127.0.0.1', 'b'], 'b'),
])
def test_by_name_or_address(hosts, found):
  assert layouts.find_local_host(hosts) == found


def test_what_the_user_says_goes_before():
  assert layouts.find_local_host(['a', 'b'], 'a') == 'a'
  with pytest.raises(ValueError, match="`host` must be one.*'c'.*--hosts=a,b"):
    layouts.find_local_host(['a', 'b'], 'c')


@pytest.mark.parametrize('hosts, which', [
    (['x.invalid', 'y.invalid'], 'not'),
    (['127.0.0.1', '127.0.0.2'], 'several times')])
def test_none_or_several_is_refused(hosts, which):
  with pytest.raises(ValueError, match=re.escape(
      f'is {which} in --hosts={",".join(hosts)}. Say which it is: '
      f'--host={hosts[0]}')):
    layouts.find_local_host(hosts)
