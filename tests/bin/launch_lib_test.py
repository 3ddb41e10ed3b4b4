# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the launcher shows; tests/distributed has it launch."""

import contextlib
import functools
import json
import os
import shlex
import socket
import sys

import pytest
import tensorflow as tf

from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config
from tfplugin.hooks.shutdown import task_tables


@pytest.mark.parametrize('program, show, state', [
    ('true', 'all', task_tables.CLAIMED), ('false', 'all', task_tables.LEFT),
    ('true', 'worker:7', task_tables.LEFT)])
def test_a_worker_that_joins_and_fails_frees_its_place(
    tmp_path, program, show, state):
  cluster = ports.make_cluster(0, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  board = task_tables.Board(cluster['ps'][0])
  board.publish(json.dumps({'cluster': cluster, 'max_workers': 3}))
  with contextlib.suppress(RuntimeError, ValueError):
    launch_lib.launch(launch_options.LaunchOptions(
        (program,), str(tmp_path / 'logs'), join=cluster['ps'][0],
        show=(show,)))
  assert {name: task_tables.state_of(mark)
          for name, mark in board.read().items()} == {'worker:0': state}
  board.close()
  del server


def test_logs_that_cannot_be_written_are_refused(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(ValueError, match='`logs_dir` must be.*can be written to'):
    launch_lib.launch(launch_options.LaunchOptions(
        ('python3',), str(tmp_path / 'file' / 'logs')))


def test_the_last_line_of_the_chief_is_shown_without_its_end(tmp_path):
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          ('printf', 'one\ntwo'), str(tmp_path), workers=0, ps=0), said.append)
  assert said[1:] == ['chief:0| one', 'chief:0| two',
                      'task     status  restarts  last step  reasons',
                      'chief:0  done    0']


def test_a_dry_run_shows_a_command_for_each_task(tmp_path):
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          ('printf', '%s', 'a b'), str(tmp_path / 'logs'), evaluator=True,
          dry_run=True), said.append)
  assert not (tmp_path / 'logs').exists()
  assert said[::2] == ['# ps:0', '# chief:0', '# worker:0', '# evaluator:0']
  clusters = []
  for task, command in zip(said[::2], said[1::2]):
    config, *rest = shlex.split(command)
    assert rest == ['printf', '%s', 'a b']
    cluster, found = cluster_config.decode(config.partition('=')[2])
    assert found.name == task[2:]
    clusters.append(cluster)
  assert clusters == [clusters[0]] * 4
  assert {job: len(addresses) for job, addresses in clusters[0].items()} == {
      'chief': 1, 'worker': 1, 'ps': 1}


def test_launches_of_one_second_have_logs_of_their_own(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  # A dry run needs no logs.
  options = functools.partial(launch_options.LaunchOptions,
                              ('printf', 'a'), '', workers=0, ps=0)
  launch_lib.launch(options(dry_run=True), lambda line: None)
  assert not list(tmp_path.iterdir())
  monkeypatch.setattr(launch_lib.time, 'strftime', lambda form: 'runs/launch-1')
  for _ in range(2):
    launch_lib.launch(options(), lambda line: None)
  for run in ('launch-1', 'launch-1-2'):
    logs = tmp_path / 'runs' / run / 'logs'
    assert (logs / 'chief-0.log').read_text() == 'a'
    assert json.loads((logs / 'summary.json').read_text())['earlier'] == []


def test_a_dry_run_shows_what_each_task_has_for_itself(tmp_path):
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          ('printf', 'a'), str(tmp_path), workers=0, dry_run=True,
          commands=("ps=printf 'b c'",), cpus=('ps=0',),
          env=('all=A=1 2', 'ps=B=3'), inject='kill chief:0 at step 1'),
      said.append)
  ps, chief = (shlex.split(line)[1:] for line in said[1::2])
  assert ps[:2] == ['A=1 2', 'B=3']
  assert ps[2] == 'TFPLUGIN_FAULTS=kill chief:0 at step 1'
  assert ps[4:] == ['taskset', '--cpu-list', '0', 'printf', 'b c']
  assert chief[0] == 'A=1 2' and chief[3:] == ['printf', 'a']
  assert ps[3] == chief[2]  # The run of the faults.


def test_each_task_has_what_it_has_for_itself(tmp_path):
  code = ('import os; print(os.environ.get("A"), os.environ["TF_CONFIG"][-12:],'
          ' sorted(os.sched_getaffinity(0)))')
  python = f'{shlex.quote(sys.executable)} -c {shlex.quote(code)}'
  cpus = sorted(os.sched_getaffinity(0))
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          (), str(tmp_path), workers=1, ps=0, commands=(f'all={python}',),
          env=('worker:0=A=1',), cpus=(f'worker={cpus[-1]}',)), said.append)
  assert f'chief:0| None "index": 0}}}} {cpus}' in said
  assert f'worker:0| 1 "index": 0}}}} {cpus[-1:]}' in said
  assert sorted(os.sched_getaffinity(0)) == cpus


def test_a_dry_run_shows_all_tasks_on_every_machine(tmp_path):
  said = {}
  for host in 'ab':
    said[host] = []
    launch_lib.launch(
        launch_options.LaunchOptions(
            ('printf',), str(tmp_path), hosts=('a', 'b'), host=host,
            evaluator=True, dry_run=True), said[host].append)
  assert said['a'] == said['b']
  assert said['a'][::2] == ['# ps:0 on a', '# chief:0 on a', '# worker:0 on b',
                            '# evaluator:0 on b']
  assert ('{"ps": ["a:22000"], "chief": ["a:22001"], "worker": ["b:22002"]}'
          in said['a'][1])


@pytest.mark.parametrize('manifest, kinds', [
    ('kubernetes', ['Service', 'NetworkPolicy', 'Job', 'Job', 'Job']),
    ('tfjob', ['TFJob', 'NetworkPolicy'])])
def test_a_manifest_is_shown_and_nothing_is_started(
    tmp_path, manifest, kinds, monkeypatch):
  monkeypatch.chdir(tmp_path)
  said = []
  launch_lib.launch(
      # The program is one of the image.
      launch_options.LaunchOptions(
          ('no-such-program',), manifest=manifest, image='a:1', run_name='b'),
      said.append)
  document = json.loads('\n'.join(said))
  assert (document['apiVersion'], document['kind']) == ('v1', 'List')
  assert [item['kind'] for item in document['items']] == kinds
  assert not list(tmp_path.iterdir())


def test_a_compose_file_is_shown():
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          ('python', 'ü.py'), manifest='compose', image='a:1'), said.append)
  document = json.loads('\n'.join(said))
  assert set(document['services']) == {'ps-0', 'chief-0', 'worker-0'}
  # YAML has other escapes.
  assert document['services']['ps-0']['command'] == ['python', 'ü.py']
  assert any('ü.py' in line for line in said)


def test_a_ps_that_does_not_end_is_ended(tmp_path):
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          ('true',), str(tmp_path), workers=0, ps_limit_secs=0.1,
          commands=('ps=sleep 120',)), said.append)
  assert [line.split()[:2] for line in said[-2:]] == [
      ['ps:0', 'ended'], ['chief:0', 'done']]


def test_a_task_that_is_not_there_cannot_be_shown():
  with pytest.raises(ValueError, match="`show`.*Received: 'evaluator'"):
    launch_lib.launch(launch_options.LaunchOptions(
        ('printf',), 'logs', show=('evaluator',)))


@pytest.fixture
def clock(monkeypatch):
  """The time, to be set by the test."""
  now = [1000.0]
  monkeypatch.setattr('time.monotonic', lambda: now[0])
  return now


def test_they_have_ended_when_none_is_there_for_long_enough(clock):
  with socket.create_server(('127.0.0.1', 0)) as server:
    port = server.getsockname()[1]
    watch = launch_lib.OtherLaunches(
        {'chief': ['127.0.0.1:1'], 'worker': [f'127.0.0.1:{port}']},
        ['chief:0', 'worker:0'], away_secs=30.0, has_chief=False)
    assert not watch.have_ended()
    clock[0] += 3600  # As long as one of them is there.
    assert not watch.have_ended()
  for _ in range(9):
    clock[0] += 3
    assert not watch.have_ended()
  clock[0] += 3
  assert watch.have_ended()


def test_one_that_comes_back_has_not_ended(clock):
  with socket.create_server(('127.0.0.1', 0)) as server:
    address = server.getsockname()
    watch = launch_lib.OtherLaunches({'chief': [f'127.0.0.1:{address[1]}']},
                                     ['chief:0'], 30.0, has_chief=False)
    assert not watch.have_ended()
  clock[0] += 29
  assert not watch.have_ended()
  with socket.create_server(address):
    clock[0] += 3
    assert not watch.have_ended()


def test_those_that_never_come_are_named(clock):
  watch = launch_lib.OtherLaunches(
      {'chief': ['127.0.0.1:1']}, ['chief:0'], 30.0, has_chief=False)
  assert not watch.have_ended()
  clock[0] += 599
  assert not watch.have_ended()
  clock[0] += 3
  with pytest.raises(TimeoutError, match='This launch waited 600 s for chief:0 '
                     'at 127.0.0.1:1. Call tfplugin-launch on the other'):
    watch.have_ended()


def test_those_that_ended_before_this_launchs_own_are_not_waited_for(clock):
  with socket.create_server(('127.0.0.1', 0)) as server:
    watch = launch_lib.OtherLaunches(
        {'chief': [f'127.0.0.1:{server.getsockname()[1]}']}, ['chief:0'], 30.0,
        has_chief=False)
    watch.look()
  clock[0] += 31
  assert watch.have_ended()


def test_a_launch_that_has_the_chief_can_do_without_them(clock):
  watch = launch_lib.OtherLaunches(
      {'worker': ['127.0.0.1:1']}, ['worker:0'], 30.0, has_chief=True)
  clock[0] += 3600
  assert not watch.have_ended()
  clock[0] += 31
  assert watch.have_ended()
