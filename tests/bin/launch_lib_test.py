# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher's settings; tests/distributed has it launch."""

import functools
import os
import re
import shlex
import sys

import pytest

from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.distribute import cluster_config


@pytest.mark.parametrize('settings, message', [
    ({'command': ()}, 'program to start must follow the flags'),
    ({'command': ('no-such-program',)}, "'no-such-program'.*is not found"),
    ({'workers': -1}, '`workers` must be an integer of at least 0'),
    ({'ps': 0.5}, '`ps` must be an integer'),
    ({'evaluator_limit_secs': -1.0}, '`evaluator_limit_secs` must be at least'),
    ({'ps_limit_secs': float('nan')}, '`ps_limit_secs` must be.*finite.*nan'),
    ({'grace_secs': -1.0}, '`grace_secs` must be at least 0'),
    ({'restart': 'perhaps'}, '`restart` must be one of'),
    ({'inject': 'kill them'}, 'A fault must be like'),
    ({'max_restarts': -1}, '`max_restarts` must be'),
    ({'bind': '192.0.2.1'}, '`bind` must be an IPv4 address of this machine'),
    ({'commands': ('ps=no-such-program',)}, "'no-such-program'.*is not found"),
    ({'cpus': ('ps=x',)}, '`cpus` must be numbers'),
    ({'env': ('A',)}, '`env` must say whose'),
    ({'port': 5}, '`port` is of runs on several machines. Received: 5'),
    ({'host': 'a'}, "`host` is of runs on several machines. Received: 'a'"),
    ({'hosts': ('a', 'b'), 'bind': 'a'}, '`bind` is of runs on one machine'),
    ({'hosts': ('a', 'b'), 'port': 65536}, '`port` must be from 1 to 65535'),
    ({'slurm': True}, '`slurm` needs the variables of a job step'),
    ({'slurm': True, 'hosts': ('a', 'b')}, '`slurm` and `hosts` each say'),
    ({'hosts': ('a', 'a')}, '`hosts` must name each machine once'),
    ({'manifest': 'helm'}, "`manifest` must be one of kubernetes, tfjob"),
    ({'image': 'a'}, "`image` is of manifests. Received: 'a'"),
    ({'manifest': 'tfjob'}, '`image` must name the container image'),
    ({'manifest': 'tfjob', 'image': 'a', 'cpus': ('ps=0',)},
     '`cpus` has no effect with `manifest`'),
    ({'manifest': 'tfjob', 'image': 'a', 'model_dir': '/a'},
     '`model_dir` has no effect with `manifest`'),
    ({'grep': '['}, '`grep` must be a regular expression'),
    ({'stall_limit': 5.0}, '`stall_limit` needs the events.*`model_dir`'),
])
def test_a_bad_setting_is_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    launch_options.LaunchOptions(
        **{'command': ('python3',), 'logs_dir': 'logs', **settings})


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
def test_a_manifest_is_shown_and_nothing_is_started(tmp_path, manifest, kinds):
  said = []
  launch_lib.launch(
      # The program is one of the image.
      launch_options.LaunchOptions(
          ('no-such-program',), str(tmp_path / 'logs'), manifest=manifest,
          image='a:1', run_name='b'), said.append)
  documents = '\n'.join(said).split('---\n')
  assert [re.search(r'^kind: (\w+)$', text, re.M)[1]
          for text in documents] == kinds
  assert not (tmp_path / 'logs').exists()


def test_a_ps_that_does_not_end_is_ended(tmp_path):
  said = []
  launch_lib.launch(
      launch_options.LaunchOptions(
          ('true',), str(tmp_path), workers=0, ps_limit_secs=0.1,
          commands=('ps=sleep 120',)), said.append)
  assert [line.split()[:2] for line in said[-2:]] == [
      ['ps:0', 'ended'], ['chief:0', 'done']]


def test_a_task_without_a_program_is_refused():
  with pytest.raises(ValueError, match='`command` must.*none for chief:0.*all'):
    launch_lib.launch(launch_options.LaunchOptions(
        (), 'logs', commands=('ps=printf',)))


def test_tasks_without_a_ps_start_again_together():
  options = functools.partial(launch_options.LaunchOptions, ('printf',), 'logs')
  assert options(ps=0).policy().is_together
  assert not options(ps=0, workers=0).policy().is_together
  assert not options().policy().is_together


def test_a_task_that_is_not_there_cannot_be_shown():
  with pytest.raises(ValueError, match="`show`.*Received: 'evaluator'"):
    launch_lib.launch(launch_options.LaunchOptions(
        ('printf',), 'logs', show=('evaluator',)))
