# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher's settings."""

import functools

import pytest

from tfplugin.bin.launches import launch_options

_MANIFEST = {'manifest': 'kubernetes', 'image': 'a'}


@pytest.mark.parametrize('settings, message', [
    ({'command': ()}, 'program to start must follow the flags'),
    ({'command': ('no-such-program',)}, 'no-such-program: no such program'),
    ({'workers': -1}, '`workers` must be an integer of at least 0'),
    ({'ps': 0.5}, '`ps` must be an integer'),
    ({'evaluator_limit_secs': -1.0}, '`evaluator_limit_secs` must be at least'),
    ({'command': ('python3', '-u', 'nope.py', 'a')}, '^nope.py: no such file'),
    ({'commands': ('ps=python3 nope.py',)}, '^nope.py: no such file'),
    ({'ps_limit_secs': float('nan')}, '`ps_limit_secs` must be.*finite.*nan'),
    ({'grace_secs': -1.0}, '`grace_secs` must be at least 0'),
    ({'restart': 'perhaps'}, '`restart` must be one of'),
    ({'inject': 'kill them'}, 'A fault must be like'),
    ({'max_restarts': -1}, '`max_restarts` must be'),
    ({'bind': '192.0.2.1'}, '`bind` must be an IPv4 address of this machine'),
    ({'commands': ('ps=no-such-program',)}, 'no-such-program: no such program'),
    ({'cpus': ('ps=x',)}, '`cpus` must be numbers'),
    ({'env': ('A',)}, '`env` must name a task'),
    ({'port': 5}, '`port` is only for runs on several machines. Received: 5'),
    ({'host': 'a'}, "`host` is only for runs on several.*Received: 'a'"),
    ({'hosts': ('a', 'b'), 'bind': 'a'}, '`bind` is only for runs on one mach'),
    ({'hosts': ('a', 'b'), 'port': 65536}, '`port` must be from 1 to 65535'),
    ({'slurm': True}, '`slurm` needs the variables of a job step'),
    ({'slurm': True, 'hosts': ('a', 'b')}, '`slurm` and `hosts` exclude each'),
    ({'hosts': ('a', 'a')}, '`hosts` must name each machine once'),
    ({'manifest': 'tfjob'}, '`image` must name the container image'),
    ({'manifest': 'tfjob', 'image': 'a', 'cpus': ('ps=0',)},
     '`cpus` has no effect with `manifest`'),
    ({'manifest': 'tfjob', 'image': 'a', 'model_dir': '/a'},
     '`model_dir` has no effect with `manifest`'),
    ({**_MANIFEST, 'inject': 'nan chief:0 at step 1; kill chief:0 at step 9'},
     '"kill chief:0 at step 9": Linux keeps .* Choose raise, terminate'),
    ({**_MANIFEST, 'inject': 'stop chief:0 for 1 s at step 9'},
     'Linux keeps the first'),
    ({**_MANIFEST, 'inject': 'terminate ps:0 at step 9'},
     'from another container. Choose'),
    ({**_MANIFEST, 'inject': 'upgrade worker:0 to python at step 9'},
     'needs the launcher'),
    ({**_MANIFEST, 'inject': 'partition chief:0 for 1 s at step 9'},
     'needs both ends of'),
    ({'grep': '['}, '`grep` must be a regular expression'),
    ({'steps': 0, 'model_dir': 'a'},
     '`steps` must be an integer of at least 1'),
    ({'manifest': 'tfjob', 'image': 'a', 'steps': 5},
     '`steps` has no effect with `manifest`'),
    ({'manifest': 'tfjob', 'image': 'a', 'logs_dir': 'logs'},
     '`logs_dir` has no effect with `manifest`'),
])
def test_a_bad_setting_is_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    launch_options.LaunchOptions(**{'command': ('python3',), **settings})


@pytest.mark.parametrize('fault', [
    'raise worker:0 at step 3', 'nan chief:0 at step 3',
    'slow chief:0 by 1 s at step 3', 'terminate chief:0 at step 3',
    'cut worker:0 for 1 s at step 3', 'fill chief:0 for 1 s at step 3',
    'damage chief:0 at step 3'])
def test_a_manifest_takes_faults_of_a_container_alone(fault):
  launch_options.LaunchOptions(('a',), inject=fault, **_MANIFEST)


def test_tasks_without_a_ps_start_again_together():
  options = functools.partial(launch_options.LaunchOptions, ('printf',), 'logs')
  assert options(ps=0).policy().is_together
  assert not options(ps=0, workers=0).policy().is_together
  assert not options().policy().is_together


@pytest.mark.parametrize('settings, number', [
    ({}, 1), ({'workers': 0}, 0), ({'hosts': ('a', 'b', 'c')}, 2),
    ({'hosts': ('a', 'b', 'c'), 'workers': 7}, 7)])
def test_how_many_workers_there_are(settings, number):
  assert launch_options.LaunchOptions(
      ('printf',), 'logs', **settings).num_workers == number


def test_below_slurm_workers_are_what_the_others_leave(monkeypatch):
  for name, value in {'STEP_NODELIST': 'n1', 'STEP_TASKS_PER_NODE': '5',
                      'PROCID': '1', 'JOB_ID': '3'}.items():
    monkeypatch.setenv(f'SLURM_{name}', value)
  monkeypatch.delenv('SLURMD_NODENAME', raising=False)
  options = launch_options.LaunchOptions(
      ('printf',), 'logs', slurm=True, evaluator=True, port=9)
  assert options.num_workers == 2
  layout = options.layout()
  assert [task.name for task in layout.own] == ['chief:0']
  assert layout.cluster['chief'] == ['n1:10']


@pytest.mark.parametrize('words', [
    ('-c', 'nope'), ('-m', 'nope.py'), ('-W', 'ignore', 'nope.py'),
    ('-u', __file__), ()])
def test_what_may_not_be_a_script_is_not_looked_for(words):
  launch_options.LaunchOptions(command=('python3', *words), logs_dir='x')
