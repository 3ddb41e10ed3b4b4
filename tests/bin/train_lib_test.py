# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the main job refuses, and from what it continues.

tests/distributed has it train.
"""

import hashlib
import importlib.util
import pathlib

import pytest
import tensorflow as tf

from tests.forks import forked_programs
from tfplugin.bin import experiment
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin import techniques
from tfplugin.bin import train_lib

tf1 = tf.compat.v1


def _options(model_dir, **kwargs):
  return options_lib.TrainOptions(model_dir=str(model_dir), **kwargs)


def _refused(options, message):
  """Checks that nothing was started and nothing written."""
  model_dir = pathlib.Path(options.model_dir)
  before = {p: p.read_bytes() for p in model_dir.glob('*')}
  with pytest.raises(ValueError, match=message):
    train_lib.train(options)
  assert {p: p.read_bytes() for p in model_dir.glob('*')} == before
  assert not forked_programs.left()


def _save(model_dir, names):
  model_dir.mkdir()
  with tf.Graph().as_default(), tf1.Session() as session:
    step = tf1.train.create_global_step()
    for name, shape in names.items():
      tf1.get_variable(name, shape, initializer=tf1.zeros_initializer())
    session.run(tf1.global_variables_initializer())
    session.run(step.assign(3))
    tf1.train.Saver().save(session, str(model_dir / 'model.ckpt'), 3)


def _write_accuracy(model_dir, step, value):
  summary = tf1.Summary()
  summary.value.add(tag='accuracy', simple_value=value)
  directory = str(pathlib.Path(model_dir, 'eval'))
  with tf.Graph().as_default(), tf1.summary.FileWriter(directory) as writer:
    writer.add_summary(summary, step)


_MLP = {'hidden1/kernel': [64, 128], 'hidden1/bias': [128],
        'hidden2/kernel': [128, 64], 'hidden2/bias': [64],
        'logits/kernel': [64, 10], 'logits/bias': [10]}


def test_a_truncated_data_file_is_refused(tmp_path):
  data = tmp_path / 'digits.csv'
  data.write_text('1,2,3')
  _refused(_options(tmp_path / 'run', data_file=str(data)), 'truncated')
  assert not (tmp_path / 'run').exists()


def test_a_corrupt_checkpoint_is_refused_and_kept(tmp_path):
  _save(tmp_path / 'run', _MLP)
  data, = (tmp_path / 'run').glob('*.data-*')
  data.write_bytes(data.read_bytes()[:100])
  _refused(_options(tmp_path / 'run'), 'cannot be read')


def test_a_foreign_checkpoint_is_refused_and_kept(tmp_path):
  _save(tmp_path / 'run', {'embedding': [5, 2]})
  _refused(_options(tmp_path / 'run'), '`hidden1/kernel` is missing')


def test_another_optimizers_checkpoint_is_refused_and_kept(tmp_path):
  _save(tmp_path / 'run', _MLP)
  _options(tmp_path / 'run', optimizer='sgd').save()
  _refused(_options(tmp_path / 'run', optimizer='adam'),
           'state of mlp .*and adam. Received: .*sgd, where `beta1_power` is')


def test_a_model_dir_that_cannot_be_written_to_is_refused(tmp_path):
  (tmp_path / 'file').write_text('')
  _refused(_options(tmp_path / 'file' / 'run'), 'can be written to.*Not a dir')


def test_the_accuracy_of_an_earlier_checkpoint_is_not_that_of_the_run(tmp_path):
  _save(tmp_path / 'run', _MLP)
  _write_accuracy(tmp_path / 'run', 2, 0.75)
  # The checkpoint has the steps already, and nobody is to evaluate it.
  result = train_lib.train(_options(
      tmp_path / 'run', wrapper='none', steps=3, evaluator=False))
  assert (result.last_step, result.accuracy) == (3, None)
  _write_accuracy(tmp_path / 'run', 3, 0.5)
  again = train_lib.train(_options(
      tmp_path / 'run', wrapper='none', steps=3, evaluator=False))
  assert again.accuracy == 0.5


def test_a_single_process_evaluates_a_run_that_is_done(tmp_path):
  _save(tmp_path / 'run', _MLP)
  result = train_lib.train(_options(
      tmp_path / 'run', wrapper='none', workers=0, steps=3, evaluator=False))
  # All weights are 0, so that every row is taken for the first class.
  assert 0.05 < result.accuracy < 0.15
  assert not result.roles


@pytest.mark.parametrize('changed, said', [
    ({'strategy': 'elastic_average'},
     'wrapper=none (was drop_stale), strategy=elastic_average (was none)'),
    ({'wrapper': 'drop_stale', 'staleness': 3, 'batch_size': 32},
     'batch_size=32 (was 64), staleness=3 (was 5)'),
    # Neither changes what is learnt.
    ({'wrapper': 'drop_stale', 'staleness': 5, 'evaluator': True,
      'grace_secs': 9.0}, '')])
def test_what_differs_from_the_session_before_is_said(
    tmp_path, capsys, changed, said):
  model_dir = tmp_path / 'run'
  _save(model_dir, _MLP)
  _write_accuracy(model_dir, 3, 0.5)
  _options(model_dir, wrapper='drop_stale', staleness=5, steps=2,
           batch_size=64).save()
  train_lib.train(_options(model_dir, steps=3, **{
      'evaluator': False, 'batch_size': 64, **changed}))
  out = capsys.readouterr().out
  assert (f'Warning: the training in {model_dir} continues with other '
          f'settings: {said}. To train separately' in out) is bool(said)
  assert ('Warning' in out) is bool(said)


@pytest.fixture(scope='module', params=['none', 'drop_stale'])
def trained(request, tmp_path_factory):
  """The options of a run of three steps, without or with a wrapper."""
  model_dir = tmp_path_factory.mktemp(request.param)
  options = options_lib.TrainOptions(
      model_dir=str(model_dir), wrapper=request.param, workers=0, steps=3)
  estimator, train_spec, _ = experiment.make_experiment(options)
  estimator.train(train_spec.input_fn, max_steps=3)
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
  step = train_lib.check_input(
      options_lib.TrainOptions(model_dir=trained.model_dir, **technique))
  assert step == 3


def test_an_optimizer_has_to_have_its_state(trained):
  before = _contents(trained)
  with pytest.raises(ValueError, match=(
      'training state of mlp with wrapper=none and momentum.*of mlp with '
      f'wrapper={trained.wrapper} and adam, where `hidden1/kernel/Momentum` is '
      'missing')):
    train_lib.check_input(options_lib.TrainOptions(
        model_dir=trained.model_dir, wrapper='none', optimizer='momentum'))
  assert _contents(trained) == before


def test_a_finished_run_needs_no_training_state(trained):
  assert train_lib.check_input(options_lib.TrainOptions(
      model_dir=trained.model_dir, optimizer='momentum', steps=3)) == 3


def test_nothing_is_missing_here():
  train_lib.check_installed()


def test_what_is_missing_is_named_with_the_command(monkeypatch):
  find = importlib.util.find_spec
  monkeypatch.setattr(importlib.util, 'find_spec',
                      lambda name: None if name == 'rich' else find(name))
  with pytest.raises(RuntimeError, match=(
      r"needs rich.*python -m pip install 'tfplugin\[train\]'")):
    train_lib.check_installed()
