# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what each task is started with."""

import pytest

from tfplugin.bin.launches import starts
from tfplugin.bin.launches import task_settings
from tfplugin.distribute import cluster_config

_PS = cluster_config.Task('ps', 0)
_CHIEF = cluster_config.Task('chief', 0)


def test_each_task_has_its_own_or_that_of_all():
  found = starts.make(
      [_PS, _CHIEF], ('a', 'b'), task_settings.parse(
          ['ps=c d'], ['all=A=1', 'chief=A=2'], ['ps=0']), '')
  assert found == [(_PS, ('c', 'd'), {'A': '1'}, (0,)),
                   (_CHIEF, ('a', 'b'), {'A': '2'}, None)]


def test_faults_are_of_one_run():
  found = starts.make([_PS, _CHIEF], ('a',), task_settings.parse(),
                      'kill chief:0 at step 1')
  assert found[0].variables == found[1].variables
  assert found[0].variables['TFPLUGIN_FAULTS'] == 'kill chief:0 at step 1'


def test_a_task_without_a_program_is_refused():
  with pytest.raises(ValueError, match='`command` must.*none for chief:0.*all'):
    starts.make([_PS, _CHIEF], (), task_settings.parse(['ps=a']), '')


def test_a_task_that_is_not_there_is_refused():
  with pytest.raises(ValueError, match='`env` must name tasks or jobs'):
    starts.make([_PS], ('a',), task_settings.parse(env=['worker=A=1']), '')
