# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of going on in the model_dir of another wrapper or strategy.

The checkpoints are written by the programs' own Estimator.
"""

import hashlib

import pytest

from tfplugin.bin import experiment
from tfplugin.bin import options as options_lib
from tfplugin.bin import resumption
from tfplugin.bin import run_files
from tfplugin.bin import techniques


@pytest.fixture(scope='module', params=['none', 'drop_stale'])
def trained(request, tmp_path_factory):
  """The options of a run of three steps, without or with a wrapper."""
  model_dir = tmp_path_factory.mktemp(request.param)
  options = options_lib.TrainOptions(
      model_dir=str(model_dir), wrapper=request.param, workers=0, steps=3)
  run_files.status_dir(model_dir).mkdir()
  parts = experiment.make_experiment(options)
  parts.estimator.train(parts.train_spec.input_fn, max_steps=3)
  options.save()
  return options


def _contents(options):
  return {str(p): hashlib.sha256(p.read_bytes()).hexdigest()
          for p in run_files.log_dir(options.model_dir).parent.rglob('*')
          if p.is_file()}


@pytest.mark.parametrize('technique', [
    *({'wrapper': w} for w in techniques.TECHNIQUES),
    *({'strategy': s} for s in techniques.TECHNIQUES if s != 'none'),
    # It has no state that could be missing.
    {'optimizer': 'sgd'}])
def test_a_run_goes_on_with_another_technique(trained, technique):
  step = resumption.check_input(
      options_lib.TrainOptions(model_dir=trained.model_dir, **technique))
  assert step == 3


def test_an_optimizer_has_to_have_its_state(trained):
  before = _contents(trained)
  with pytest.raises(ValueError, match=(
      'training state of mlp with wrapper=none and momentum.*of mlp with '
      f'wrapper={trained.wrapper} and adam, where `hidden1/kernel/Momentum` is '
      'missing')):
    resumption.check_input(options_lib.TrainOptions(
        model_dir=trained.model_dir, wrapper='none', optimizer='momentum'))
  assert _contents(trained) == before


def test_a_finished_run_needs_no_training_state(trained):
  assert resumption.check_input(options_lib.TrainOptions(
      model_dir=trained.model_dir, optimizer='momentum', steps=3)) == 3
