# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""ShardedTPUEstimator: shards off TPU, against numbers worked out by hand.

The model is y = w * x with w = 0, x = 1, 2, 3, 4 and labels 2 x. The gradient
of the mean squared error is -2 * mean(2 x**2) = -30; of the two halves of the
batch alone it is -10 and -50. One step of SGD at 0.1 ends at 3 for the mean
over the batch, and at 6 for the sum of the halves' gradients.
"""

import functools
import inspect

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import estimator as tfplugin_estimator

tf1 = tf.compat.v1
_PIPELINE = tf1.estimator.tpu.InputPipelineConfig
_X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.1)


def _sharded_sgd(**kwargs):
  return tfplugin.CrossShardOptimizer(_sgd(), **kwargs)


def _minimize(optimizer, loss, w):
  del w
  return optimizer.minimize(loss, tf1.train.get_global_step())


def _apply_gradients(optimizer, loss, w):
  return optimizer.apply_gradients([(tf.gradients(loss, w)[0], w)],
                                   tf1.train.get_global_step())


def _model_fn(features, labels, mode, params):
  """Linear regression that notes the batch sizes that it is told."""
  params['seen'].append(params.get('batch_size'))
  w = tf1.get_variable('w', initializer=[[0.0]])
  y = tf.matmul(features, w)
  spec = tf1.estimator.tpu.TPUEstimatorSpec
  if mode == tf.estimator.ModeKeys.PREDICT:
    return spec(mode, predictions={'y': y}, export_outputs={
        'serving_default': tf.estimator.export.PredictOutput({'y': y})})
  loss = tf.reduce_mean(tf.square(labels - y))
  if mode == tf.estimator.ModeKeys.EVAL:

    def metric_fn(labels, y):
      return {'covariance': tf1.metrics.mean(
          tf.cast(tf.shape(labels)[0], tf.float32)),
              'error': tf1.metrics.mean_absolute_error(labels, y)}

    return spec(mode, loss=loss, eval_metrics=(metric_fn, [labels, y]))
  train_op = params['train'](params['optimizer'](), loss, w)
  return spec(mode, loss=loss, train_op=train_op,
              host_call=params.get('host_call', lambda labels: None)(labels),
              scaffold_fn=params.get('scaffold_fn'))


def _input_fn(params):
  data = tf1.data.Dataset.from_tensor_slices((_X, 2.0 * _X))
  return data.batch(params['batch_size'], drop_remainder=True)


def _make(tmp_path, num_shards=2, deployment=_PIPELINE.PER_HOST_V1,
          optimizer=_sharded_sgd, train=_minimize, batch_size=4, **params):
  tpu_config = tf1.estimator.tpu.TPUConfig(
      num_shards=num_shards, per_host_input_for_training=deployment)
  config = tf1.estimator.tpu.RunConfig(
      model_dir=str(tmp_path), tpu_config=tpu_config)
  return tfplugin_estimator.ShardedTPUEstimator(
      _model_fn, config=config, use_tpu=False, train_batch_size=batch_size,
      eval_batch_size=4, predict_batch_size=4,
      params={'optimizer': optimizer, 'train': train, **params})


def test_defaults_are_those_of_the_base_class():
  own = tfplugin_estimator.ShardedTPUEstimator.__init__.__defaults__
  base = inspect.signature(tf1.estimator.tpu.TPUEstimator).parameters.values()
  assert list(own) == [each.default for each in base][:len(own)]


class _Shared(list):
  """A list that stays itself where an Estimator copies its params."""

  def __deepcopy__(self, memo):
    return self


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('optimizer, train, expected', [
    (_sgd, _minimize, 3.0),
    (_sharded_sgd, _minimize, 3.0),
    (lambda: _sharded_sgd(reduction=tf1.losses.Reduction.SUM), _minimize, 6.0),
    # Gradients of tf.gradients are summed: MEAN scales in compute_gradients.
    (_sharded_sgd, _apply_gradients, 6.0),
], ids=['plain', 'mean', 'sum', 'tf_gradients'])
def test_train_reduces_over_shards(tmp_path, optimizer, train, expected):
  seen = _Shared()
  estimator = _make(tmp_path, optimizer=optimizer, train=train, seen=seen)
  estimator.train(_input_fn, max_steps=1)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[expected]], rtol=1e-6)
  assert estimator.get_variable_value('global_step') == 1
  assert seen == [2, 2]
  assert sorted(estimator.get_variable_names()) == ['global_step', 'w']


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('deployment, sizes, expected', [
    (_PIPELINE.PER_HOST_V1, [4], 3.0),
    (_PIPELINE.PER_HOST_V2, [2], 3.0),
    # Both calls read rows 1 and 2: 0.1 * 2 * mean(2, 8) = 1.
    (_PIPELINE.PER_SHARD_V1, [2, 2], 1.0),
], ids=['per_host', 'per_host_v2', 'per_shard'])
def test_input_fn_gets_the_batch_size_of_its_deployment(
    tmp_path, deployment, sizes, expected):
  received = []

  def input_fn(params):
    received.append(params['batch_size'])
    return _input_fn(params)

  estimator = _make(tmp_path, deployment=deployment, seen=_Shared())
  estimator.train(input_fn, max_steps=1)
  assert received == sizes
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[expected]], rtol=1e-6)


@pytest.mark.usefixtures('behavior')
def test_four_shards_give_the_weights_of_one(tmp_path):
  weights = []
  for shards in (1, 4):
    estimator = _make(tmp_path / str(shards), num_shards=shards, seen=_Shared())
    estimator.train(lambda params: _input_fn(params).repeat(), max_steps=5)
    weights.append(estimator.get_variable_value('w'))
  # w <- w + 0.2 * mean(x**2) * (2 - w) = 1.5 * (2 - w) + w, five times from 0.
  w = 0.0
  for _ in range(5):
    w += 1.5 * (2.0 - w)
  np.testing.assert_allclose(weights[0], [[w]], rtol=1e-5)
  np.testing.assert_allclose(weights[1], [[w]], rtol=1e-5)


@pytest.mark.usefixtures('behavior')
def test_evaluate_predict_and_export_see_the_whole_batch(tmp_path):
  estimator = _make(tmp_path / 'model', seen=_Shared())
  estimator.train(_input_fn, max_steps=1)
  metrics = estimator.evaluate(_input_fn, steps=1)
  # w is 3: errors are x = 1, 2, 3, 4; their squares' mean is 7.5.
  assert metrics['loss'] == pytest.approx(7.5)
  assert metrics['error'] == pytest.approx(2.5)
  # metric_fn ran once, with all four rows.
  assert metrics['covariance'] == 4.0
  predictions = [p['y'] for p in estimator.predict(_input_fn)]
  np.testing.assert_allclose(predictions, 3.0 * _X, rtol=1e-6)

  def serving_input_fn():
    x = tf1.placeholder(tf.float32, [None, 1], name='x')
    return tf.estimator.export.TensorServingInputReceiver(x, x)

  path = estimator.export_saved_model(str(tmp_path / 'export'),
                                      serving_input_fn)
  with tf.Graph().as_default(), tf1.Session() as session:
    loaded = tf1.saved_model.load(session, ['serve'], path.decode())
    signature = loaded.signature_def['serving_default']
    y = session.run(signature.outputs['y'].name, {'x:0': [[2.0]]})
  np.testing.assert_allclose(y, [[6.0]], rtol=1e-6)


@pytest.mark.usefixtures('behavior')
def test_host_call_gets_the_rows_of_all_shards_and_scaffold_fn_runs(tmp_path):
  rows = _Shared()
  finalized = _Shared()

  def host_call(labels):
    def note(labels):
      return tf.py_function(lambda x: rows.append(x.numpy().tolist()), [labels],
                            [])
    return note, [labels]

  class Scaffold(tf1.train.Scaffold):

    def finalize(self):
      finalized.append(True)
      return super().finalize()

  estimator = _make(tmp_path, seen=_Shared(), host_call=host_call,
                    scaffold_fn=Scaffold)
  estimator.train(_input_fn, max_steps=1)
  assert rows[0] == (2.0 * _X).tolist()
  assert finalized


@pytest.mark.usefixtures('behavior')
def test_cross_replica_sum_sums_over_the_shards(tmp_path):

  def train(optimizer, loss, w):
    total = tfplugin.cross_replica_sum(loss)
    return tf.group(_minimize(optimizer, loss, w),
                    tf1.get_variable('total', initializer=0.0).assign(total))

  estimator = _make(tmp_path, seen=_Shared(), train=train)
  estimator.train(_input_fn, max_steps=1)
  # The shards' losses with w = 0: mean(4, 16) = 10 and mean(36, 64) = 50.
  assert estimator.get_variable_value('total') == pytest.approx(60.0)


@pytest.mark.usefixtures('behavior')
def test_last_batch_may_be_smaller_but_in_training(tmp_path):

  def partial(rows):
    return lambda params: tf1.data.Dataset.from_tensor_slices(
        (_X[:rows], 2.0 * _X[:rows])).batch(4)

  estimator = _make(tmp_path, seen=_Shared())
  estimator.train(partial(2), max_steps=1)
  # w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 10 / 2; the error is (2 - w) x.
  assert estimator.get_variable_value('w') == pytest.approx(1.0)
  metrics = estimator.evaluate(partial(3), steps=1)
  assert metrics['loss'] == pytest.approx(14.0 / 3.0)
  assert metrics['error'] == pytest.approx(2.0)
  for rows in (1, 3):
    predictions = [p['y'] for p in estimator.predict(partial(rows))]
    np.testing.assert_allclose(predictions, _X[:rows], rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match='multiple of the '
                       '2 shards of `ShardedTPUEstimator`'):
      estimator.train(partial(rows), steps=1)


def test_training_ends_where_shards_are_left_without_a_batch(tmp_path):

  def input_fn(params):  # Three batches for four shards, after the first four.
    x = np.ones([7, 1], np.float32)
    return tf1.data.Dataset.from_tensor_slices((x, x)).batch(
        params['batch_size'], drop_remainder=True)

  estimator = _make(tmp_path, num_shards=4, deployment=_PIPELINE.PER_HOST_V2,
                    seen=_Shared())
  estimator.train(input_fn)
  assert estimator.get_variable_value('global_step') == 1


@pytest.mark.parametrize('size', ['4', 4.0])
def test_batch_size_that_is_no_integer_is_refused(tmp_path, size):
  with pytest.raises(TypeError, match='`train_batch_size` must be an integer. '
                     f'Received: {size!r}'):
    _make(tmp_path, seen=_Shared(), batch_size=size)


def test_config_of_another_estimator_is_refused(tmp_path):
  with pytest.raises(TypeError, match='`config` must be a .*tpu.RunConfig'):
    tfplugin_estimator.ShardedTPUEstimator(
        _model_fn, use_tpu=False, train_batch_size=4,
        config=tf.estimator.RunConfig(str(tmp_path)))


@pytest.mark.parametrize('kwargs, message', [
    ({'batch_size': 5}, r'`train_batch_size` must .* shards, 2. Received: 5'),
    ({'batch_size': None}, r'`train_batch_size` must be given for 2 shards'),
])
def test_batch_size_that_does_not_fit_is_refused(tmp_path, kwargs, message):
  with pytest.raises(ValueError, match=message):
    _make(tmp_path, seen=_Shared(), **kwargs)


def test_missing_eval_batch_size_names_the_argument(tmp_path):
  config = _config().replace(model_dir=str(tmp_path))
  estimator = tfplugin_estimator.ShardedTPUEstimator(
      _model_fn, config=config, use_tpu=False, train_batch_size=4,
      params={'optimizer': _sgd, 'train': _minimize, 'seen': _Shared()})
  estimator.train(_input_fn, max_steps=1)
  with pytest.raises(ValueError, match='`eval_batch_size` must be given'):
    estimator.evaluate(_input_fn, steps=1)


def _config(**kwargs):
  return tf1.estimator.tpu.RunConfig(
      tpu_config=tf1.estimator.tpu.TPUConfig(num_shards=2, **kwargs))


@pytest.mark.parametrize('num_cores', [None, 1, 2])
def test_a_shard_has_one_core(num_cores):
  config = _config(num_cores_per_replica=num_cores)
  make = functools.partial(
      tfplugin_estimator.ShardedTPUEstimator, _model_fn, use_tpu=False,
      train_batch_size=4, config=config)
  if num_cores != 2:
    make()
    return
  with pytest.raises(ValueError, match=(
      '`TPUConfig.num_cores_per_replica` must be None or 1 .*Received: 2. '
      'Leave it out')):
    make()


@pytest.mark.parametrize('argument, message', [
    ({'batch_axis': (1, 0)}, '`batch_axis` must be 0'),
    ({'devices': []}, '`devices` must')])
def test_bad_axis_and_devices_are_refused(argument, message):
  with pytest.raises(ValueError, match=message):
    tfplugin_estimator.ShardedTPUEstimator(
        _model_fn, use_tpu=False, train_batch_size=4, config=_config(),
        **argument)


def test_per_host_v2_without_a_dataset_is_refused(tmp_path):
  estimator = _make(tmp_path, deployment=_PIPELINE.PER_HOST_V2, seen=_Shared())
  with pytest.raises(TypeError, match='must return a `tf.data.Dataset`'):
    estimator.train(lambda params: (_X[:2], _X[:2]), max_steps=1)


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('optimizer, train', [
    (lambda: tf1.tpu.CrossShardOptimizer(_sgd()), _minimize),
    (_sgd, lambda optimizer, loss, w: _minimize(
        optimizer, tf1.tpu.cross_replica_sum(loss, [[0, 1]]), w)),
], ids=['optimizer', 'sum'])
def test_ops_of_a_tpu_are_refused_with_the_replacement(
    tmp_path, optimizer, train):
  estimator = _make(tmp_path, optimizer=optimizer, train=train, seen=_Shared())
  with pytest.raises(RuntimeError, match='Use `tfplugin.cross_replica_sum` and'
                     ' `tfplugin.CrossShardOptimizer`'):
    estimator.train(_input_fn, max_steps=1)


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('groups, expected', [
    ([[0, 1], [2, 3]], 1.0),
    ([[3, 0], [1, 2]], 3.4),
])
def test_variables_follow_the_group_of_the_first_shard(
    tmp_path, groups, expected):
  # The shards' gradients are -4 x**2: -4, -16, -36 and -64. The mean over
  # shards 0 and 1 is -10, over 0 and 3 it is -34; the rate is 0.1.
  estimator = _make(tmp_path, num_shards=4, seen=_Shared(),
                    optimizer=lambda: _sharded_sgd(group_assignment=groups))
  estimator.train(_input_fn, max_steps=1)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[expected]], rtol=1e-6)
