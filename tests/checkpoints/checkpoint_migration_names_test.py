# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What each variable of an original's checkpoint becomes."""

from __future__ import annotations

import pytest

from tfplugin.checkpoints import checkpoint_migration


def _names(changes):
  return {change.old: change.new for change in changes}


@pytest.mark.parametrize('names, expected', [
    (['w', 'w/Adam', 'global_step'], {}),
    (['cond/beta1_power', 'stale_counter'],
     {'cond/beta1_power': 'beta1_power'}),
    (['net/cond/beta1_power', 'stale_counter'], {}),
    (['VariableClipping/beta2_power'],
     {'VariableClipping/beta2_power': 'beta2_power'}),
    (['cond_1/VariableClipping_2/beta2_power', 'stale_counter'],
     {'cond_1/VariableClipping_2/beta2_power': 'beta2_power'}),
    (['VariableClipping_10/beta1_power', 'VariableClipping_9/beta1_power',
      'VariableClipping/beta1_power', 'beta1_power'],
     {'VariableClipping/beta1_power': 'beta1_power_1',
      'VariableClipping_9/beta1_power': 'beta1_power_2',
      'VariableClipping_10/beta1_power': 'beta1_power_3'}),
    (['global_center_variable/a/w', 'global_step'],
     {'global_center_variable/a/w': 'a/w'}),
    (['global_center_variable/w', 'w', 'local_center_variable/w',
      'local_step_1'],
     {'global_center_variable/w': 'w', 'w': None,
      'local_center_variable/w': None, 'local_step_1': None}),
    (['dense/kernel', 'tower_1/dense_1/kernel', 'tower_0/w', 'tower_x/w'],
     {'tower_1/dense_1/kernel': None}),
])
def test_to_tfplugin(names, expected):
  changes = checkpoint_migration.to_tfplugin(names)
  assert _names(changes) == {**{name: name for name in names}, **expected}
  assert all(bool(change.reason) == (change.old != change.new)
             for change in changes)
  assert [change.old for change in changes] == sorted(names)


@pytest.mark.parametrize('names, match', [
    (['cond/beta1_power', 'w'], 'must have stale_counter, .* cond/beta1_power'),
    (['_CHECKPOINTABLE_OBJECT_GRAPH', 'w'], 'must have variables by name'),
    (['_TRACKABLE_OBJECT_GRAPH'], 'must have variables by name'),
    (['global_center_variable/local_step', 'local_step', 'x',
      'VariableClipping/beta1_power_1', 'VariableClipping/beta1_power',
      'beta1_power_1'], 'becomes beta1_power_1'),
])
def test_what_is_not_known_is_refused(names, match):
  with pytest.raises(ValueError, match=match):
    checkpoint_migration.to_tfplugin(names)


@pytest.mark.parametrize('wrapper, names, expected', [
    ('cross_shard', ['w', 'beta1_power'], {}),
    ('towers', ['w', 'beta1_power'], {}),
    ('clip', ['w', 'beta1_power'],
     {'beta1_power': 'VariableClipping/beta1_power'}),
    ('drop_stale', ['w', 'beta1_power', 'stale_counter'],
     {'beta1_power': 'cond/beta1_power'}),
    ('drop_stale', ['w'], {None: 'stale_counter'}),
    ('elastic_average', ['w', 'moving_mean', 'global_step'],
     {'w': 'global_center_variable/w'}),
])
def test_to_contrib_and_back(wrapper, names, expected):
  changes = checkpoint_migration.to_contrib(
      names, wrapper, lambda name: name == 'w')
  assert _names(changes) == {**{name: name for name in names}, **expected}
  back = checkpoint_migration.to_tfplugin([change.new for change in changes])
  assert {change.new for change in back} == {*names} | (
      {'stale_counter'} if wrapper == 'drop_stale' else set())


def test_a_second_adam_is_not_guessed():
  with pytest.raises(ValueError, match='one Adam at most, for drop_stale'):
    checkpoint_migration.to_contrib(
        ['beta1_power', 'beta1_power_1', 'stale_counter'], 'drop_stale', bool)
