# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what some tasks have for themselves."""

import os

import pytest

from tfplugin.bin.launches import task_settings
from tfplugin.distribute import cluster_config

_CHIEF = cluster_config.Task('chief', 0)
_WORKERS = [cluster_config.Task('worker', index) for index in range(2)]
_PS = cluster_config.Task('ps', 0)


def test_the_most_special_command_goes_before():
  settings = task_settings.parse(command=[
      'all=python a.py', "worker=python b.py --x='1 2'",
      'worker:1=python c.py'])
  assert [settings.command_of(task) for task in (_CHIEF, *_WORKERS)] == [
      ('python', 'a.py'), ('python', 'b.py', '--x=1 2'), ('python', 'c.py')]
  assert task_settings.parse().command_of(_CHIEF) is None


def test_variables_of_a_task_its_job_and_all_are_merged():
  settings = task_settings.parse(env=[
      'worker:1=A=task', 'all=A=all', 'all=B==b,=', 'worker=A=job',
      'worker=C='])
  assert settings.variables_of(_PS) == {'A': 'all', 'B': '=b,='}
  assert settings.variables_of(_WORKERS[0]) == {
      'A': 'job', 'B': '=b,=', 'C': ''}
  assert settings.variables_of(_WORKERS[1]) == {
      'A': 'task', 'B': '=b,=', 'C': ''}


def test_sets_of_cpus_are_numbers_and_ranges():
  settings = task_settings.parse(cpus=['ps=5,0-2,1', 'worker=3'])
  assert settings.cpus_of(_PS) == (0, 1, 2, 5)
  assert settings.cpus_of(_WORKERS[1]) == (3,)
  assert settings.cpus_of(_CHIEF) is None


def test_cpus_of_this_machine_are_looked_for_where_a_task_starts(monkeypatch):
  monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 1, 5},
                      raising=False)
  settings = task_settings.parse(cpus=['ps=4-5', 'worker=0-1'])
  settings.check_cpus([_CHIEF, *_WORKERS])
  with pytest.raises(ValueError, match=r'`cpus` must be CPUs that this process '
                     r'may use \(0, 1, 5\). Received: \(4, 5\)'):
    settings.check_cpus([_PS])


def test_a_system_without_sets_of_cpus_says_so(monkeypatch):
  monkeypatch.delattr(os, 'sched_getaffinity', raising=False)
  settings = task_settings.parse(cpus=['ps=0'])
  settings.check_cpus([_CHIEF])
  with pytest.raises(ValueError, match='`cpus` must be left out'):
    settings.check_cpus([_PS])


@pytest.mark.parametrize('setting, message', [
    ({'command': ['python ps.py']}, '`command` must name a task.*--command=ps'),
    ({'command': ['=python']}, '`command` must name a task'),
    ({'command': ['ps= ']}, '`command` must name a program'),
    ({'command': ["ps='a"]}, '`command` must have quotes in pairs'),
    ({'command': ['ps=a', 'ps=b']}, '`command` must be given once for ps'),
    ({'env': ['worker']}, '`env` must name a task.*--env=worker=OMP'),
    ({'env': ['A=1']}, "`env` must have the form TASK=NAME=VALUE.*'1'"),
    ({'env': ['ps=1A=1']}, '`env` must have the form TASK=NAME'),
    ({'env': ['ps=A=1', 'ps=A=2']}, '`env` must give each variable of a'),
    ({'env': ['ps=TF_CONFIG={}']}, '`env` must leave TF_CONFIG to the launche'),
    ({'cpus': ['ps=a']}, '`cpus` must be numbers and ranges.*--cpus=ps:0=0-1'),
    ({'cpus': ['ps=1-0']}, '`cpus` must be numbers and ranges'),
    ({'cpus': ['ps=0,']}, '`cpus` must be numbers and ranges'),
])
def test_another_form_is_refused(setting, message):
  with pytest.raises(ValueError, match=message):
    task_settings.parse(**setting)


@pytest.mark.parametrize('setting', [
    {'command': ['worker:2=a']}, {'env': ['evaluator=A=1']},
    {'cpus': ['chief:1=0']}])
def test_a_task_that_is_not_there_is_refused(setting):
  settings = task_settings.parse(**setting)
  flag, = setting
  with pytest.raises(ValueError, match=f'`{flag}` must name tasks or jobs of '
                     r'the run \(all, chief, chief:0, ps, ps:0, worker, worker'
                     ':0, worker:1.*Received.*start more tasks'):
    settings.check([_PS, _CHIEF, *_WORKERS])


def test_tasks_that_are_there_are_not_refused():
  task_settings.parse(command=['all=a', 'worker:1=b'], env=['ps=A=1'],
                      cpus=['chief:0=0']).check([_PS, _CHIEF, *_WORKERS])


def test_each_task_has_its_own_or_that_of_all():
  found = task_settings.make_starts(
      [_PS, _CHIEF], ('a', 'b'), task_settings.parse(
          ['ps=c d'], ['all=A=1', 'chief=A=2'], ['ps=0']), '')
  assert found == [(_PS, ('c', 'd'), {'A': '1'}, (0,)),
                   (_CHIEF, ('a', 'b'), {'A': '2'}, None)]


def test_faults_are_of_one_run():
  found = task_settings.make_starts(
      [_PS, _CHIEF], ('a',), task_settings.parse(), 'kill chief:0 at step 1')
  assert found[0].variables == found[1].variables
  assert found[0].variables['TFPLUGIN_FAULTS'] == 'kill chief:0 at step 1'


def test_a_task_without_a_program_is_refused():
  with pytest.raises(ValueError, match='`command` must.*none for chief:0.*all'):
    task_settings.make_starts([_PS, _CHIEF], (),
                              task_settings.parse(['ps=a']), '')


def test_starts_refuse_a_task_that_is_not_there():
  with pytest.raises(ValueError, match='`env` must name tasks or jobs'):
    task_settings.make_starts([_PS], ('a',),
                              task_settings.parse(env=['worker=A=1']), '')
