# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of each technique, as a wrapper and as a strategy, in one process."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import experiment
from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin import techniques
from tfplugin.bin.processes import task_states
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.report.reading import run_data

tf1 = tf.compat.v1

_STEPS = 6


def _train(model_dir, monkeypatch, to_step=_STEPS, **kwargs):
  """Trains in this process; returns its last status and the metrics."""
  # conftest has made the logical devices.
  monkeypatch.setattr(tf.config, 'set_logical_device_configuration',
                      lambda *args: None)
  options = options_lib.TrainOptions(
      model_dir=str(model_dir), workers=0, steps=to_step, max_norm=0.5,
      **kwargs)
  with run_files.reserved(model_dir) as session:  # As the launcher does.
    monkeypatch.setenv(event_log.SESSION_VARIABLE, str(session))
  estimator, train_spec, eval_spec = experiment.make_experiment(options)
  estimator.train(train_spec.input_fn, max_steps=to_step)
  states = task_states.TaskStates(model_dir, ['chief:0'], from_start=True)
  states.update()
  return (states.states['chief:0'].status,
          estimator.evaluate(eval_spec.input_fn))


_COUNTS = {'dropped': 0, 'applied': _STEPS}


@pytest.mark.sampled(2)
@pytest.mark.parametrize('strategy, figures, counts', [
    ('elastic_average', {'elastic distance'}, {}),
    ('drop_stale', set(), _COUNTS),
    ('clip', {'fraction of rows at the bound'}, {}),
    ('towers', set(), {}),
    ('cross_shard', set(), {}),
])
def test_a_strategy_trains_the_plain_model(
    tmp_path, monkeypatch, strategy, figures, counts):
  last, metrics = _train(tmp_path, monkeypatch, strategy=strategy)
  assert last.num_steps == _STEPS
  assert set(last.figures) == figures
  assert last.counts == counts
  assert metrics['global_step'] == _STEPS
  # Another process evaluates it, and goes on from it, without a strategy, and
  # the other way round.
  _, plain = _train(tmp_path, monkeypatch, wrapper='none')
  assert plain['accuracy'] == metrics['accuracy']
  for to_step, technique in ((8, {'wrapper': 'none'}),
                             (10, {'strategy': strategy})):
    last, metrics = _train(tmp_path, monkeypatch, to_step, **technique)
    assert (last.num_steps, metrics['global_step']) == (2, to_step)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('wrapper, figures, counts', [
    ('none', set(), {}),
    ('elastic_average', {'elastic distance'}, {}),
    ('drop_stale', {'staleness'}, _COUNTS),
    ('clip', {'fraction of rows clipped'}, {}),
    ('towers', set(), {}),
    ('cross_shard', set(), {}),
])
def test_a_wrapper_trains_the_plain_model(
    tmp_path, monkeypatch, wrapper, figures, counts):
  last, metrics = _train(tmp_path, monkeypatch, wrapper=wrapper)
  assert last.num_steps == _STEPS
  assert set(last.figures) == figures
  assert last.counts == counts
  assert metrics['global_step'] == _STEPS
  assert 0.0 < metrics['accuracy'] <= 1.0


def test_the_report_has_the_samples_of_all_sessions(tmp_path, monkeypatch):
  for to_step in (6, 12, 18):
    _train(tmp_path, monkeypatch, to_step, wrapper='elastic_average')
    with run_files.reserved(tmp_path):  # As the next start of the command does.
      pass
  samples = [e for e in event_files.read_run(tmp_path).events
             if e.name == 'sampling']
  assert {e.session for e in samples} == {1, 2, 3}
  told = run_data.read(tmp_path).samples['chief:0']
  assert [(s.time, s.step) for s in told] == [(e.time, e.step) for e in samples]


@pytest.mark.parametrize('model', models.MODELS)
def test_each_model_has_rules_for_what_is_clipped(
    tmp_path, monkeypatch, model):
  _train(tmp_path, monkeypatch, strategy='clip', model=model)
  reader = tf.train.load_checkpoint(str(tmp_path))
  name = 'embedding' if model == 'embedding' else 'logits/kernel'
  axis = 1 if model == 'embedding' else 0
  norms = np.linalg.norm(reader.get_tensor(name), axis=axis)
  assert norms.max() <= 0.5 * (1 + 1e-6)


@pytest.mark.parametrize('strategy', ['towers', 'cross_shard'])
def test_devices_share_the_rows_of_a_step(tmp_path, monkeypatch, strategy):
  monkeypatch.setattr(tf.config, 'set_logical_device_configuration',
                      lambda *args: None)
  _, train_spec, _ = experiment.make_experiment(options_lib.TrainOptions(
      model_dir=str(tmp_path), strategy=strategy, batch_size=32, devices=2))
  _, labels = next(iter(train_spec.input_fn()))
  assert len(labels) == 16


def _build(wrapper, mode, **kwargs):
  """Returns the spec, and the names in each report that was added."""
  options = options_lib.TrainOptions(model_dir='unused', wrapper=wrapper,
                                     **kwargs)
  added = []

  def add_report(spec, report):
    added.append((set(report.figures), set(report.counts)))
    return spec

  model_fn = techniques.make_model_fn(options, add_report)
  features, labels = tf.zeros([4, 64]), tf.zeros([4], tf.int32)
  if options.model == 'embedding':
    features = tf.zeros([4], tf.int32)
  params = {'num_classes': 10, 'optimizer': lambda: models.OPTIMIZERS[
      options.optimizer](options.learning_rate)}
  spec = model_fn(features=features, labels=labels, mode=mode, params=params,
                  config=tf.estimator.RunConfig(model_dir='unused'))
  return spec, added


@pytest.mark.parametrize('wrapper', techniques.TECHNIQUES)
def test_evaluation_has_the_variables_of_the_plain_model(wrapper):
  names = []
  for name in (wrapper, 'none'):
    with tf.Graph().as_default():
      tf1.train.create_global_step()
      _, added = _build(name, tf.estimator.ModeKeys.EVAL)
      names.append(sorted(v.op.name for v in tf1.global_variables()))
    assert not added
  assert names[0] == names[1]


def test_what_is_clipped_are_rows_of_embeddings():
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    spec, _ = _build('clip', tf.estimator.ModeKeys.TRAIN,
                     model='embedding', max_norm=0.25)
    table, context = tf1.trainable_variables()
    norms = [tf.norm(v, axis=1) for v in (table, context)]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(3):
        session.run(spec.train_op)
      words, near = session.run(norms)
  # Word 0 alone is in the batch; the others have their initial value.
  assert words[0] <= 0.25 * (1 + 1e-6)
  assert near[0] <= 0.25 * (1 + 1e-6)


def test_no_strategy_is_made_where_none_is_asked_for():
  options = options_lib.TrainOptions(model_dir='unused')
  assert techniques.make_strategy(options) is None


def test_towers_of_a_batch_that_they_do_not_divide_are_one_device(
    tmp_path, monkeypatch):
  weights = []
  for name, settings in (('one', {'wrapper': 'none'}),
                         ('three', {'wrapper': 'towers', 'devices': 3})):
    (tmp_path / name).mkdir()
    # 32 rows a step: 11, 11 and 10.
    _train(tmp_path / name, monkeypatch, optimizer='sgd', learning_rate=0.1,
           batch_size=32, **settings)
    reader = tf.train.load_checkpoint(str(tmp_path / name))
    weights.append({v: reader.get_tensor(v)
                    for v in reader.get_variable_to_shape_map()})
  assert weights[0].keys() == weights[1].keys()
  for name, value in weights[0].items():
    # Sums of 32 rows in another order, a few times over.
    np.testing.assert_allclose(weights[1][name], value, rtol=1e-4, atol=1e-6)
