# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies in Estimators: canned ones, checkpoints with and without."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

pytestmark = [
    pytest.mark.filterwarnings('ignore:.*deprecated'),
    pytest.mark.filterwarnings('ignore:.*was not decreasing')]

STRATEGIES = {
    'elastic': lambda: distribute.ElasticAverageStrategy(
        communication_period=2),
    'drop_stale': lambda: distribute.DropStaleGradientStrategy(staleness=0),
    'clipping': lambda: distribute.VariableClippingStrategy(
        distribute.DropStaleGradientStrategy(staleness=9),
        {'kernel|weights': 0}, 10.0),
}

ROWS = np.random.RandomState(0).randn(64, 4).astype(np.float32)
WORDS = np.array([['a', ''], ['b', 'c']] * 32)
LABELS = (ROWS.sum(axis=1) > 0).astype(np.int64)

NUMERIC = [tf.feature_column.numeric_column('x', (4,))]
SPARSE = [tf.feature_column.categorical_column_with_hash_bucket('words', 8)]


def input_fn(batches=200):
  return tf1.data.Dataset.from_tensor_slices(
      ({'x': ROWS, 'words': WORDS}, LABELS)).repeat().batch(16).take(batches)


def receiver_fn():
  return tf1.estimator.export.build_raw_serving_input_receiver_fn({
      'x': tf1.placeholder(tf.float32, [None, 4]),
      'words': tf1.placeholder(tf.string, [None, 2])})()


CANNED = {
    'DNNClassifier': lambda **kwargs: tf1.estimator.DNNClassifier(
        [8, 4], NUMERIC, batch_norm=True, **kwargs),
    'LinearClassifier': lambda **kwargs: tf1.estimator.LinearClassifier(
        NUMERIC + SPARSE, **kwargs),
    'DNNLinearCombinedClassifier': lambda **kwargs: (
        tf1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=SPARSE, dnn_feature_columns=NUMERIC,
            dnn_hidden_units=[4], **kwargs)),
}


def config_of(strategy):
  return tf1.estimator.RunConfig(
      train_distribute=STRATEGIES[strategy](), tf_random_seed=1,
      log_step_count_steps=None)


def weights_of(estimator):
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


@pytest.mark.parametrize('canned', CANNED)
@pytest.mark.parametrize('strategy', STRATEGIES)
def test_canned_estimator_trains_evaluates_predicts_and_exports(
    strategy, canned, tmp_path):
  estimator = CANNED[canned](
      config=config_of(strategy), model_dir=str(tmp_path))
  exporter = tf.estimator.BestExporter(serving_input_receiver_fn=receiver_fn)
  tf.estimator.train_and_evaluate(
      estimator,
      tf.estimator.TrainSpec(input_fn, max_steps=6),
      tf.estimator.EvalSpec(input_fn, steps=4, throttle_secs=0,
                            exporters=exporter))
  # No strategy here, on the same directory.
  plain = CANNED[canned](model_dir=str(tmp_path))
  metrics = plain.evaluate(lambda: input_fn(4))
  assert metrics['global_step'] == 6
  logits = np.array([p['logits'][0] for p in plain.predict(
      lambda: input_fn(4))])
  assert metrics['accuracy'] == np.mean((logits > 0) == (LABELS == 1))
  (export,) = (tmp_path / 'export' / 'best_exporter').iterdir()
  serve = tf.saved_model.load(str(export)).signatures['predict']
  served = serve(x=tf.constant(ROWS), words=tf.constant(WORDS))
  np.testing.assert_allclose(
      served['logits'].numpy()[:, 0], logits, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_checkpoint_continues_without_strategy_and_with_it_again(
    behavior, strategy, tmp_path):
  make = CANNED['DNNClassifier']
  plain = make(model_dir=str(tmp_path))
  plain.train(input_fn, steps=2)
  names = plain.get_variable_names()
  with_strategy = make(config=config_of(strategy), model_dir=str(tmp_path))
  with_strategy.train(input_fn, steps=2)
  assert plain.get_variable_names() == names
  plain.train(input_fn, steps=2)
  with_strategy.train(input_fn, steps=2)
  assert plain.get_variable_value('global_step') == 8


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_warm_start_reaches_what_is_saved(behavior, strategy, tmp_path):
  make = CANNED['DNNClassifier']
  source = make(model_dir=str(tmp_path / 'source'))
  source.train(input_fn, steps=5)
  started = make(
      config=config_of(strategy).replace(save_checkpoints_steps=1),
      model_dir=str(tmp_path / 'started'),
      warm_start_from=str(tmp_path / 'source'))
  started.train(input_fn, steps=1)
  reader = tf.train.load_checkpoint(
      str(tmp_path / 'started' / 'model.ckpt-0'))
  kernel = 'dnn/hiddenlayer_0/kernel'
  np.testing.assert_array_equal(
      reader.get_tensor(kernel), source.get_variable_value(kernel))


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_stop_if_no_decrease_hook_and_scaffold_saver(strategy, tmp_path):
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('kernel', [4, 1], initializer=tf1.ones_initializer())
    unsaved = tf1.get_variable('unsaved', initializer=2.0)
    loss = tf.reduce_mean(tf.matmul(features['x'], w) * 0 + unsaved)
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
        loss, tf1.train.get_global_step(), var_list=[w])
    saver = tf1.train.Saver([w, tf1.train.get_global_step()])
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op,
        scaffold=tf1.train.Scaffold(saver=saver))

  estimator = tf1.estimator.Estimator(
      model_fn, model_dir=str(tmp_path), config=config_of(strategy))
  hook = tf.estimator.experimental.stop_if_no_decrease_hook(
      estimator, 'loss', 1, run_every_secs=None, run_every_steps=1)
  estimator.train(input_fn, hooks=[hook], steps=2)
  assert sorted(estimator.get_variable_names()) == ['global_step', 'kernel']


@pytest.mark.parametrize('strategy', ['elastic', 'drop_stale'])
def test_keras_optimizer_of_v2_estimator_is_refused(strategy, tmp_path):
  estimator = tf.estimator.DNNClassifier(
      [4], NUMERIC, model_dir=str(tmp_path), config=config_of(strategy))
  with pytest.raises(TypeError, match='tf.compat.v1.estimator'):
    estimator.train(input_fn, steps=1)


def test_keras_optimizer_with_a_copy_per_device_is_refused(tmp_path):
  config = tf1.estimator.RunConfig(
      train_distribute=distribute.ElasticAverageStrategy(
          devices=['/cpu:0', '/cpu:1']))
  estimator = tf.estimator.DNNClassifier(
      [4], NUMERIC, model_dir=str(tmp_path), config=config)
  with pytest.raises(TypeError, match="count_steps='local'"):
    estimator.train(input_fn, steps=1)


def test_keras_model_to_estimator_saves_the_center(tmp_path):
  model = tf.keras.Sequential([tf.keras.layers.Dense(
      1, use_bias=False, input_shape=(1,), kernel_initializer='ones')])
  model.compile(tf1.train.GradientDescentOptimizer(0.5), 'mae')
  config = tf1.estimator.RunConfig(
      train_distribute=distribute.ElasticAverageStrategy(
          communication_period=2, moving_rate=0.25))
  estimator = tf.keras.estimator.model_to_estimator(
      model, model_dir=str(tmp_path), config=config)
  ones = np.ones([2, 1], np.float32)
  estimator.train(
      lambda: tf1.data.Dataset.from_tensors((ones, -9 * ones)).repeat(),
      steps=1)
  # The gradient is 1: the copy goes 1 -> .5 -> 0, the centre a quarter of it.
  (name,) = [n for n in estimator.get_variable_names() if 'kernel' in n]
  assert estimator.get_variable_value(name).tolist() == [[0.75]]


def test_keras_optimizer_trains_where_every_step_counts(tmp_path):
  config = tf1.estimator.RunConfig(
      train_distribute=distribute.ElasticAverageStrategy(
          count_steps='local', communication_period=2))
  estimator = tf.estimator.DNNClassifier(
      [4], NUMERIC, model_dir=str(tmp_path), config=config)
  estimator.train(input_fn, steps=3)
  assert estimator.get_variable_value('global_step') == 3


def test_strategy_inside_a_strategy_raises():
  outer, inner = STRATEGIES['elastic'](), STRATEGIES['drop_stale']()
  with tf.Graph().as_default(), outer.scope():
    with pytest.raises(RuntimeError, match='strategy'):
      with inner.scope():
        pass
