# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A parameter server that is lost for a moment or for good, and a chief."""
# BUILD data: //tests/chaos:program.py

import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.chaos import play
from tests.chaos import program
from tests.forks import forked_programs
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import local_cluster

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(240)]

_STEPS = 200
# No checkpoint after the one at the start.
_NEVER = 10**6


def _launch(directory, form, faults, save_steps, early=(), **kwargs):
  options = launch_options.LaunchOptions(
      command=(sys.executable, str(play.PROGRAM), form, str(directory),
               str(_STEPS), '3', str(save_steps), str(program.STEP_SECS),
               *early),
      logs_dir=str(directory / 'logs'), model_dir=str(directory / 'model'),
      **{'workers': 2, 'ps': 2, 'restart': 'always', 'inject': faults,
         **kwargs})
  with play.environment():
    launch_lib.launch(options, lambda line: None)
  assert not forked_programs.left()


def _saved(directory, name):
  return tf.train.load_checkpoint(str(directory / 'model')).get_tensor(name)


def _check_no_step_was_lost(steps):
  """The chief continues at a step that it has seen: others made a few since."""
  rises = [after[2] - before[2] for before, after in zip(steps, steps[1:])]
  assert play.fall(steps) <= max(rises)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('early', [(), ('early',)], ids=['plain', 'early'])
@pytest.mark.parametrize('form', ['elastic_average', 'ElasticAverageStrategy'])
def test_elastic_averaging_continues_from_the_chiefs_copies(
    tmp_path, form, early):
  # ps:0 has the global step. The only checkpoint is that of the first step.
  _launch(tmp_path, form, 'kill ps:0 at step 60; kill ps:1 at step 90', _NEVER,
          early, max_restarts=2)
  steps = play.steps_of(tmp_path)['chief-0']
  _check_no_step_was_lost(steps)
  assert _saved(tmp_path, 'global_step') >= _STEPS
  for name in ('weight_0', 'weight_1'):
    np.testing.assert_allclose(_saved(tmp_path, name), program.TARGET, atol=1.5)
  tasks = json.loads((tmp_path / 'logs/summary.json').read_text())['tasks']
  # A chief at its end restarts with a parameter server that it lost.
  assert {task['task']: task['restarts'] for task in tasks
          if task['task'].startswith('ps')} == {'ps:0': 1, 'ps:1': 1}


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', [
    'drop_stale_gradients', 'ElasticAverageStrategy'])
def test_a_chief_restores_nothing_beside_a_hook_that_makes_a_variable(
    tmp_path, form):
  _launch(tmp_path, form, 'kill chief:0 at step 60', _NEVER, ('early',))
  _check_no_step_was_lost(play.steps_of(tmp_path)['chief-0'])
  assert _saved(tmp_path, 'global_step') >= _STEPS


def test_one_that_is_lost_for_good_is_named_and_the_run_goes_on_without(
    tmp_path):
  with pytest.raises(local_cluster.RoleError) as raised:
    _launch(tmp_path, 'drop_stale_gradients',
            'kill ps:1 at step 50; kill ps:1 at step 80', 20, max_restarts=1)
  assert str(raised.value).startswith('ps:1 was ended by SIGKILL.')
  assert str(raised.value).endswith(
      'ps:1 has restarted 1 times, and does not restart again. To continue '
      'from the newest checkpoint, repeat the command; to continue without '
      'this parameter server, repeat it with --ps=1.')
  assert 60 <= _saved(tmp_path, 'global_step') < _STEPS
  before = play.steps_of(tmp_path)['chief-0']
  _launch(tmp_path, 'drop_stale_gradients', '', 20, ps=1)
  after = play.steps_of(tmp_path)['chief-0'][len(before):]
  assert after[0][2] >= 60
  assert _saved(tmp_path, 'global_step') >= _STEPS
