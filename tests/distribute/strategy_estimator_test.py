# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Canned estimators under every strategy, against one device.

All batches are the same, and the elastic centre goes all the way to the copies:
then each strategy's rule gives the values of one device.
"""

import functools
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:.*deprecated')

CPUS = ['/cpu:0', '/cpu:1']
STEPS = 2

# strategy: (how to make it, what STEPS steps add to the global step)
STRATEGIES = {
    'elastic': (lambda: distribute.ElasticAverageStrategy(
        communication_period=STEPS, moving_rate=1.0), 1),
    'elastic_devices': (lambda: distribute.ElasticAverageStrategy(
        communication_period=STEPS, moving_rate=0.5, devices=CPUS), 1),
    'drop_stale': (
        lambda: distribute.DropStaleGradientStrategy(staleness=0), STEPS),
    'tower': (lambda: distribute.TowerStrategy(CPUS), STEPS),
    'cross_shard': (lambda: distribute.CrossShardStrategy(CPUS), STEPS),
    'clipping': (lambda: distribute.VariableClippingStrategy(
        distribute.DropStaleGradientStrategy(staleness=0),
        {'kernel|weights': 0}, 100.0), STEPS),
}

# Those in which no device waits for another one inside a branch.
BRANCHING = {
    **{name: STRATEGIES[name]
       for name in ('elastic', 'drop_stale', 'tower', 'clipping')},
    'packed': (distribute.PackedParameterServerStrategy, STEPS),
    'one_tower': (lambda: distribute.TowerStrategy(CPUS[:1]), STEPS),
    'one_shard': (lambda: distribute.CrossShardStrategy(CPUS[:1]), STEPS),
    'clipping_mirrored': (lambda: distribute.VariableClippingStrategy(
        tf1.distribute.MirroredStrategy(CPUS[:1]), {'kernel': []}, 100.0),
                          STEPS),
}

ROWS = np.random.RandomState(0).randn(8, 4).astype(np.float32)
WORDS = np.array([['a', ''], ['b', 'c']] * 4)
LABELS = (ROWS.sum(axis=1) > 0).astype(np.int64)

NUMERIC = [tf.feature_column.numeric_column('x', (4,))]
SPARSE = [tf.feature_column.categorical_column_with_hash_bucket('words', 8)]
MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE


def input_fn():
  return tf1.data.Dataset.from_tensors(
      ({'x': ROWS, 'words': WORDS}, LABELS)).repeat()


def receiver_fn():
  return tf1.estimator.export.build_raw_serving_input_receiver_fn({
      'x': tf1.placeholder(tf.float32, [None, 4]),
      'words': tf1.placeholder(tf.string, [None, 2])})()


CANNED = {
    'DNNClassifier': lambda **kwargs: tf1.estimator.DNNClassifier(
        [2], NUMERIC, batch_norm=True, loss_reduction=MEAN, **kwargs),
    'LinearClassifier': lambda **kwargs: tf1.estimator.LinearClassifier(
        NUMERIC + SPARSE, loss_reduction=MEAN, **kwargs),
    'DNNLinearCombinedClassifier': lambda **kwargs: (
        tf1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=SPARSE, dnn_feature_columns=NUMERIC,
            dnn_hidden_units=[2], batch_norm=True, loss_reduction=MEAN,
            **kwargs)),
}
# It has what the others have; and where nothing is trained is no strategy.
MOST = 'DNNLinearCombinedClassifier'


def config_of(strategy=None):
  make_strategy, _ = STRATEGIES.get(strategy, (lambda: None, 0))
  return tf1.estimator.RunConfig(
      train_distribute=make_strategy(), tf_random_seed=1,
      save_checkpoints_steps=100, save_summary_steps=None,
      log_step_count_steps=None)


def contents_of(estimator):
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


@pytest.fixture(scope='module', name='plain')
def fixture_plain(tmp_path_factory):
  """Trains on one device; once for all strategies."""

  @functools.cache
  def train(behavior, canned):
    directory = tmp_path_factory.mktemp(f'{behavior}-{canned}')
    estimator = CANNED[canned](
        config=config_of(), model_dir=str(directory / 'end'))
    estimator.train(input_fn, steps=1)
    shutil.copytree(directory / 'end', directory / 'start')
    estimator.train(input_fn, steps=STEPS)
    return directory / 'start', contents_of(estimator)

  return train


def served_logits(export_dir):
  with tf.Graph().as_default(), tf1.Session() as session:
    model = tf1.saved_model.load(session, ['serve'], export_dir)
    signature = model.signature_def['predict']
    return session.run(signature.outputs['logits'].name, {
        signature.inputs['x'].name: ROWS,
        signature.inputs['words'].name: WORDS})[:, 0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize('behavior, canned', [
    *(('v2', canned) for canned in CANNED),
    ('v1', MOST)], indirect=['behavior'])
@pytest.mark.parametrize('strategy', STRATEGIES)
def test_canned_estimator_trains_evaluates_predicts_and_exports(
    behavior, strategy, canned, plain, tmp_path):
  start, expected = plain(behavior, canned)
  shutil.copytree(start, tmp_path / 'model')
  estimator = CANNED[canned](
      config=config_of(strategy), model_dir=str(tmp_path / 'model'))
  steps = STRATEGIES[strategy][1]
  estimator.train(input_fn, steps=steps)
  contents = contents_of(estimator)
  assert contents.pop('global_step') == 1 + steps
  assert sorted([*contents, 'global_step']) == sorted(expected)
  for name, value in contents.items():
    np.testing.assert_allclose(
        value, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)
  if canned == MOST:
    check_evaluates_predicts_and_exports(estimator, str(tmp_path / 'export'))


def check_evaluates_predicts_and_exports(estimator, directory):
  predictions = estimator.predict(input_fn, yield_single_examples=False)
  logits = next(predictions)['logits'][:, 0]
  metrics = estimator.evaluate(input_fn, steps=1)
  assert metrics['accuracy'] == np.mean((logits > 0) == (LABELS == 1))
  np.testing.assert_allclose(metrics['average_loss'], np.mean(
      np.log1p(np.exp(np.where(LABELS, -logits, logits)))), rtol=1e-5)
  export_dir = estimator.export_saved_model(directory, receiver_fn)
  np.testing.assert_allclose(
      served_logits(export_dir.decode()), logits, rtol=1e-4, atol=1e-6)


def model_fn(features, labels, mode):
  """The gradient of `kernel` is 1; each step takes 0.5 off."""
  del labels
  kernel = tf1.get_variable(
      'kernel', [4, 1], initializer=tf1.ones_initializer())
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf1.estimator.EstimatorSpec(
        mode, predictions=tf.matmul(features['x'], kernel))
  loss = tf.reduce_sum(kernel)
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf1.train.MomentumOptimizer(0.5, 0.0).minimize(
          loss, tf1.train.get_global_step()))


def estimator_of(directory, strategy=None, fn=model_fn, **kwargs):
  return tf1.estimator.Estimator(
      fn, model_dir=str(directory), config=config_of(strategy), **kwargs)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_train_and_evaluate_exports_and_goes_on_without_strategy_and_with_it(
    behavior, strategy, tmp_path):
  steps = STRATEGIES[strategy][1]
  exporter = tf.estimator.BestExporter(serving_input_receiver_fn=receiver_fn)
  tf1.estimator.train_and_evaluate(
      estimator_of(tmp_path, strategy),
      tf.estimator.TrainSpec(input_fn, max_steps=steps),
      tf.estimator.EvalSpec(input_fn, steps=1, exporters=exporter))
  (export,) = (tmp_path / 'export' / 'best_exporter').iterdir()
  assert (export / 'saved_model.pb').exists()
  plain = estimator_of(tmp_path)
  plain.train(input_fn, steps=1)
  estimator_of(tmp_path, strategy).train(input_fn, steps=steps)
  assert plain.get_variable_names() == [
      'global_step', 'kernel', 'kernel/Momentum']
  assert plain.get_variable_value('global_step') == 2 * steps + 1
  # Five steps in all.
  np.testing.assert_allclose(
      plain.get_variable_value('kernel'), np.full([4, 1], 1 - 5 * 0.5))


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_warm_start_reaches_what_is_saved(behavior, strategy, tmp_path):
  estimator_of(tmp_path / 'source').train(input_fn, steps=3)
  steps = STRATEGIES[strategy][1]
  estimator = estimator_of(
      tmp_path / 'started', strategy,
      warm_start_from=tf1.estimator.WarmStartSettings(
          str(tmp_path / 'source'), vars_to_warm_start='kernel'))
  estimator.train(input_fn, steps=steps)
  assert tf.train.load_variable(
      str(tmp_path / 'started' / 'model.ckpt-0'), 'kernel').tolist() == [
          [-0.5]] * 4
  assert estimator.get_variable_value('kernel').tolist() == [[-1.5]] * 4


@pytest.mark.filterwarnings('ignore:.*was not decreasing')
@pytest.mark.parametrize('strategy', BRANCHING)
def test_a_train_op_may_be_a_branch_of_a_condition(
    behavior, strategy, tmp_path):
  """`minimize` returns an operation, as on one device."""
  del behavior
  make, steps = BRANCHING[strategy]

  def model_fn(features, labels, mode):
    del features, labels
    w = tf1.get_variable('kernel', [1], initializer=tf1.zeros_initializer())
    loss, step = tf.reduce_sum((w - 1.0) ** 2), tf1.train.get_global_step()
    sgd = tf1.train.GradientDescentOptimizer(0.1)
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.cond(
        tf.math.is_finite(loss), lambda: sgd.minimize(loss, step), tf.no_op))

  estimator = tf1.estimator.Estimator(model_fn, str(tmp_path),
                                      tf1.estimator.RunConfig(
                                          train_distribute=make()))
  estimator.train(input_fn, steps=steps)
  np.testing.assert_allclose(
      estimator.get_variable_value('kernel'), [1 - 0.8 ** STEPS], rtol=1e-6)
  assert estimator.get_variable_value('global_step') == steps


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_stopping_hooks_and_scaffold_saver(strategy, tmp_path):
  def fn(features, labels, mode):
    spec = model_fn(features, labels, mode)
    tf1.get_variable('unsaved', initializer=2.0)
    saver = tf1.train.Saver(
        tf1.trainable_variables()[:1] + [tf1.train.get_global_step()])
    return spec._replace(scaffold=tf1.train.Scaffold(saver=saver))

  estimator = estimator_of(tmp_path, strategy, fn)
  hook = tf.estimator.experimental.stop_if_no_decrease_hook(
      estimator, 'loss', 1, run_every_secs=None, run_every_steps=1)
  stop = tf.estimator.experimental.make_early_stopping_hook(
      estimator, lambda: True, run_every_secs=None, run_every_steps=1)
  estimator.train(input_fn, hooks=[hook, stop], steps=9)
  assert estimator.get_variable_names() == ['global_step', 'kernel']
  # The first step is the last one.
  assert estimator.get_variable_value('global_step') == (
      STRATEGIES[strategy][1] - 1)


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
