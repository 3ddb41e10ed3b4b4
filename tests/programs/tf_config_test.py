# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small programs of the kinds that public reports tell of: TF_CONFIG and ends.

Each is one process, which a platform starts as the only task of a cluster.
"""

import json

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1

_ELASTIC = {'communication_period': 1, 'moving_rate': 1.0,
            'count_steps': 'local'}
DECORATORS = {
    'elastic': estimator_lib.elastic_average(**_ELASTIC),
    'drop_stale': estimator_lib.drop_stale_gradients(staleness=10),
    'clip': estimator_lib.clip_variables(rules={'w': []}, max_norm=1e6),
    'towers': estimator_lib.replicate_model_fn(devices=['/cpu:0']),
    'cross_shard': estimator_lib.cross_shard(devices=['/cpu:0']),
}
STRATEGIES = {
    'elastic_strategy': lambda: distribute.ElasticAverageStrategy(**_ELASTIC),
    'drop_stale_strategy': lambda: distribute.DropStaleGradientStrategy(
        staleness=10),
    'clip_strategy': lambda: distribute.VariableClippingStrategy(
        tf1.distribute.MirroredStrategy(['/cpu:0']), {'w': []}, 1e6),
    'tower_strategy': lambda: distribute.TowerStrategy(['/cpu:0']),
    'cross_shard_strategy': lambda: distribute.CrossShardStrategy(['/cpu:0']),
}
FORMS = [*DECORATORS, *STRATEGIES]


def _model_fn(features, labels, mode):
  """Each step takes 1 off `w`."""
  del labels
  w = tf1.get_variable('w', [], initializer=tf1.zeros_initializer())
  loss = tf.reduce_mean(w * features)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf1.estimator.EstimatorSpec(mode, {'w': w + 0 * features})
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf1.train.GradientDescentOptimizer(
          1.0).minimize(loss, tf1.train.get_global_step()))


def _input_fn(batches=None):
  return lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(batches)


def _receive():
  x = tf1.placeholder(tf.float32, [None])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


def _estimator(form, model_dir=None, strategy=None, **config):
  if form in STRATEGIES and strategy is None:
    strategy = STRATEGIES[form]()
  return tf1.estimator.Estimator(
      DECORATORS.get(form, lambda fn: fn)(_model_fn),
      config=tf1.estimator.RunConfig(
          None if model_dir is None else str(model_dir),
          train_distribute=strategy, **config))


def _run(estimator, max_steps=None, batches=None, exporters=()):
  return cluster_training.train_and_evaluate(
      estimator, tf1.estimator.TrainSpec(_input_fn(batches), max_steps),
      tf1.estimator.EvalSpec(_input_fn(1), steps=1, start_delay_secs=0,
                             throttle_secs=0, exporters=exporters))


def _set(monkeypatch, **config):
  monkeypatch.setenv('TF_CONFIG', json.dumps(config))


_CHIEF = {'cluster': {'chief': ['algo-1:2222']},
          'task': {'type': 'chief', 'index': 0}}
_MASTER = {'cluster': {'master': ['algo-1:2222']}, 'environment': 'cloud',
           'task': {'type': 'master', 'index': 0}}


def _steps(form, model_dir):
  reader = tf.train.load_checkpoint(str(model_dir))
  steps = reader.get_tensor('global_step')
  if not form.startswith('elastic'):  # The centre is behind the copy.
    assert reader.get_tensor('w') == -steps
  return steps


@pytest.mark.sampled(5)
@pytest.mark.parametrize('config', [{}, _CHIEF, _MASTER],
                         ids=['none', 'chief', 'master'])
@pytest.mark.parametrize('form', FORMS)
def test_the_platform_names_the_model_dir(form, config, tmp_path, monkeypatch):
  """A tuner of hyperparameters gives each trial a directory in TF_CONFIG."""
  _set(monkeypatch, model_dir=str(tmp_path / 'trial'), **config)
  estimator = _estimator(form)
  assert estimator.model_dir == str(tmp_path / 'trial')
  _run(estimator, max_steps=3)
  assert _steps(form, tmp_path / 'trial') == 3


@pytest.mark.sampled(5)
@pytest.mark.parametrize('config', [_CHIEF, _MASTER], ids=['chief', 'master'])
@pytest.mark.parametrize('form', FORMS)
def test_a_finished_run_is_started_again(form, config, tmp_path, monkeypatch):
  """A platform restarts a job whose last task was preempted at its end."""
  for _ in range(2):
    _set(monkeypatch, **config)
    _run(_estimator(form, tmp_path), max_steps=3)
    assert _steps(form, tmp_path) == 3
  _set(monkeypatch, **config)
  _run(_estimator(form, tmp_path), max_steps=5)
  assert _steps(form, tmp_path) == 5


@pytest.mark.sampled(5)
@pytest.mark.parametrize('config', [_CHIEF, _MASTER], ids=['chief', 'master'])
@pytest.mark.parametrize('form', FORMS)
def test_one_epoch_without_max_steps(form, config, tmp_path, monkeypatch):
  """The input ends the training; the best and the latest model are wanted."""
  _set(monkeypatch, **config)
  _run(_estimator(form, tmp_path, save_checkpoints_steps=2), batches=5,
       exporters=[
           tf.estimator.LatestExporter('latest', _receive),
           tf.estimator.BestExporter('best', _receive)])
  assert _steps(form, tmp_path) == 5
  # As with TensorFlow, a chief leaves both to an evaluator.
  for name in ('latest', 'best'):
    assert bool(list(tmp_path.glob(f'export/{name}/*/saved_model.pb'))) == (
        config is _MASTER)


@pytest.mark.parametrize('form', STRATEGIES)
def test_a_strategy_is_made_before_the_program_sets_tf_config(
    form, tmp_path, monkeypatch):
  """A program that derives TF_CONFIG from its own flags, late."""
  monkeypatch.delenv('TF_CONFIG', raising=False)
  strategy = STRATEGIES[form]()
  _set(monkeypatch, cluster={}, task={'trial': '1'})
  _run(_estimator(form, tmp_path, strategy), max_steps=3)
  assert _steps(form, tmp_path) == 3


@pytest.mark.parametrize('form', FORMS)
def test_checkpoints_are_turned_off(form, tmp_path, monkeypatch):
  """A benchmark, which saves nothing and measures its steps."""
  _set(monkeypatch, **_CHIEF)
  _run(_estimator(form, tmp_path, save_checkpoints_steps=None,
                  save_checkpoints_secs=None), max_steps=3)
