# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the settings of the main job."""

import json

import pytest

from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import techniques


def _options(**kwargs):
  return options_lib.TrainOptions(model_dir='runs/x', **kwargs)


def test_by_default_two_processes_train_on_one_ps():
  options = _options()
  assert (options.wrapper, options.model) == ('elastic_average', 'mlp')
  assert (options.workers, options.ps, options.evaluator) == (1, 1, True)
  assert options.optimizer == models.MODELS['mlp'].optimizer
  assert not options.is_local


@pytest.mark.parametrize('wrapper', ['towers', 'cross_shard'])
def test_wrappers_of_one_process_start_no_cluster(wrapper):
  options = _options(wrapper=wrapper)
  assert (options.workers, options.ps) == (0, 0)
  assert options.is_local


@pytest.mark.parametrize('strategy', techniques.TECHNIQUES)
def test_a_strategy_has_no_wrapper_unless_there_is_none(strategy):
  options = _options(strategy=strategy)
  default = 'elastic_average' if strategy == 'none' else 'none'
  assert options.wrapper == default
  assert options.technique == (default if strategy == 'none' else strategy)
  assert options.is_local == (strategy in ('towers', 'cross_shard'))
  assert _options(strategy=strategy, wrapper='none').wrapper == 'none'


def test_a_chief_alone_needs_no_ps_without_a_wrapper():
  assert _options(wrapper='none', workers=0).ps == 0
  assert _options(wrapper='drop_stale', workers=0).ps == 1


@pytest.mark.parametrize('settings, message', [
    ({'wrapper': 'foo'}, '`wrapper` must be one of elastic_average.*foo'),
    ({'strategy': 'foo'}, '`strategy` must be one of elastic_average.*foo'),
    ({'strategy': 'towers', 'wrapper': 'towers'}, 'exclude each other.*towers'),
    ({'model': 'resnet'}, '`model` must be one of mlp, cnn, embedding'),
    ({'optimizer': 'lion'}, '`optimizer` must be one of'),
    ({'workers': -1}, '`workers` must be an integer of at least 0'),
    ({'workers': 1.5}, '`workers` must be an integer.*1.5'),
    ({'ps': True}, '`ps` must be an integer'),
    ({'steps': 0}, '`steps` must be an integer of at least 1'),
    ({'batch_size': 0}, '`batch_size`'),
    ({'communication_period': 0}, '`communication_period`'),
    ({'moving_rate': 1.5}, r'`moving_rate` must be in \[0, 1\].*1.5'),
    ({'rho': -0.1}, '`rho` must be at least 0'),
    ({'staleness': -1}, '`staleness`'),
    ({'max_norm': 0.0}, '`max_norm` must be positive'),
    ({'max_norm': float('nan')}, '`max_norm` must be positive'),
    ({'max_norm': float('inf')}, '`max_norm` must be positive and finite'),
    ({'rho': float('inf')}, '`rho` must be at least 0 and finite.*inf'),
    ({'start_limit_secs': float('inf')}, '`start_limit_secs` must be positive'),
    ({'learning_rate': -1.0}, '`learning_rate` must be positive'),
    ({'devices': 0}, '`devices`'),
    ({'restart': 'perhaps'}, '`restart` must be one of'),
    ({'max_restarts': -1}, '`max_restarts` must be an integer'),
    ({'stall_limit': -1.0}, '`stall_limit` must be at least 0 and finite'),
    ({'grace_secs': float('nan')}, '`grace_secs` must be.*finite.*nan'),
    ({'inject': 'kill them'}, 'A fault must be like'),
    ({'wrapper': 'towers', 'ps': 1}, 'devices of one process.*ps=1'),
    ({'wrapper': 'drop_stale', 'ps': 0}, 'needs a parameter server'),
    ({'wrapper': 'none', 'workers': 2, 'ps': 0}, 'Workers need a parameter'),
    ({'strategy': 'towers', 'workers': 1}, 'devices of one process.*workers=1'),
    ({'strategy': 'drop_stale', 'ps': 0}, 'needs a parameter server'),
    ({'wrapper': 'cross_shard', 'batch_size': 33},
     'divisible by `devices`.*batch_size=33, devices=2. Set .* to e.g. 34'),
    ({'strategy': 'towers', 'devices': 3}, 'divisible by .* to e.g. 33'),
])
def test_a_bad_setting_is_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    _options(**settings)


def test_towers_split_any_batch():
  options = _options(wrapper='towers', devices=3)
  assert options.batch_size % options.devices


def test_an_empty_model_dir_is_refused():
  with pytest.raises(ValueError, match='`model_dir` must be a path'):
    options_lib.TrainOptions(model_dir='')


def test_settings_survive_the_file(tmp_path):
  options = options_lib.TrainOptions(model_dir=str(tmp_path), workers=3,
                                     moving_rate=0.25)
  assert options_lib.load(options.save()) == options


@pytest.mark.parametrize('kind', ['wrapper', 'strategy'])
def test_a_file_with_the_former_name_of_a_wrapper_is_the_same(tmp_path, kind):
  options = options_lib.TrainOptions(model_dir=str(tmp_path),
                                     **{kind: 'towers'})
  path = options.save()
  path.write_text(path.read_text().replace('towers', 'tower'))
  assert options_lib.load(path) == options
  assert not options.differences(options_lib.load(path))


def test_settings_of_other_techniques_are_not_written(tmp_path):
  for session, kind in enumerate(('wrapper', 'strategy'), 1):
    path = options_lib.TrainOptions(
        model_dir=str(tmp_path), **{kind: 'drop_stale'}).save(session)
    settings = json.loads(path.read_text())
    assert settings['staleness'] == 10
    assert not {'devices', 'max_norm', 'rho', 'moving_rate', 'synchronous',
                'communication_period'} & set(settings)


def test_other_settings_of_an_earlier_session_stay(tmp_path):
  made = [options_lib.TrainOptions(
      model_dir=str(tmp_path), wrapper='drop_stale', staleness=s)
          for s in (1, 1, 2)]
  for session, one in enumerate(made, 1):
    path = one.save(session)
  assert options_lib.load(path) == made[2]
  # Sessions 1 and 2 had the same.
  assert options_lib.load(tmp_path / 'train_options-2.json') == made[1]
  assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize('text', ['{"model_dir', '{"modell_dir": "x"}'])
def test_a_file_of_something_else_is_refused(tmp_path, text):
  path = tmp_path / 'train_options.json'
  path.write_text(text)
  with pytest.raises(ValueError, match='must hold the settings of a run'):
    options_lib.load(path)
