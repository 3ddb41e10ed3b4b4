# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every decorator on every kind of model_fn, against numpy.

The model is a linear regression; one step of SGD is worked out in float64. Each
decorator changes that step by one line of numpy, see `_one_step`.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tfplugin import estimator as decorators

tf1 = tf.compat.v1
ModeKeys = tf.estimator.ModeKeys

DEVICES = ['/cpu:0', '/cpu:1']
RATE, BOUND, MOVING_RATE = 0.0625, 0.5, 0.25
START = np.array([[0.5], [-0.25], [0.125]])  # The weight and the bias.
DECORATE = {
    'replicate_model_fn': decorators.replicate_model_fn(devices=DEVICES),
    'elastic_average': decorators.elastic_average(
        communication_period=1, moving_rate=MOVING_RATE),
    'drop_stale_gradients': decorators.drop_stale_gradients(staleness=0),
    'clip_variables': decorators.clip_variables(
        rules={'weight': 0}, max_norm=BOUND),
    'cross_shard': decorators.cross_shard(devices=DEVICES),
}
X, Y = decorated_models.first_batch()


def _sgd():
  return tf1.train.GradientDescentOptimizer(RATE)


def _gradient(x, y, start):
  ones = np.concatenate([x, np.ones([len(x), 1])], axis=1)
  return 2 * ones.T @ (ones @ start - y) / len(x)


def _bounded(gradient):
  """As `clip_by_global_norm` with 2.0, which the models do by hand."""
  return gradient * min(1.0, 2.0 / np.linalg.norm(gradient))


def _one_step(name, style='minimize', start=START):
  """What the checkpoint of a decorated model holds after one step."""
  by_hand = _bounded if style in ('clip_by_hand', 'tf_gradients') else np.copy
  gradient = by_hand(_gradient(X, Y, start))
  if name == 'cross_shard':
    scale = 1.0 if style == 'tf_gradients' else 0.5
    gradient = sum(by_hand(scale * _gradient(x, y, start))
                   for x, y in zip(np.split(X, 2), np.split(Y, 2)))
  updated = start - RATE * gradient
  if name == 'elastic_average':
    return start + MOVING_RATE * (updated - start)  # The centre.
  if name == 'clip_variables':
    updated[:2] *= min(1.0, BOUND / np.linalg.norm(updated[:2]))
  return updated


def _input_fn():
  x, y = X.astype(np.float32), Y.astype(np.float32)
  return tf.data.Dataset.from_tensors(({'x': x, 'y': y}, y))


def _without_labels():
  return _input_fn().map(lambda features, _: features)


def _build(features, labels=None, mode=ModeKeys.TRAIN):
  labels = features['y'] if labels is None and 'y' in features else labels
  return decorated_models.regression('minimize', _sgd)(
      features['x'], labels, mode)


def _values(estimator, scope):
  return np.concatenate([estimator.get_variable_value(f'{scope}weight'),
                         [estimator.get_variable_value(f'{scope}bias')]])


def _check(model_fn, expected, input_fn=_input_fn, params=None, scope=''):
  estimator = tf.estimator.Estimator(
      model_fn, params=params, config=tf.estimator.RunConfig(
          tf_random_seed=7, save_summary_steps=None, log_step_count_steps=None))
  estimator.train(input_fn, steps=1)
  np.testing.assert_allclose(_values(estimator, scope), expected, rtol=1e-5)
  assert estimator.get_variable_value('global_step') == 1
  return estimator


@pytest.fixture(params=DECORATE, name='name')
def _name(request):
  return request.param


def _plain(features, labels, mode):
  return _build(features, labels, mode)


class _Model:
  """A model_fn as a method of each kind."""

  def method(self, features, labels, mode):
    return _build(features, labels, mode)

  def __call__(self, features, labels, mode):
    return _build(features, labels, mode)


def _in_class_body(decorate):

  class Model:
    start = decorate(_Model.method)

    @staticmethod
    @decorate
    def static(features, labels, mode):
      return _build(features, labels, mode)

    @classmethod
    @decorate
    def of_class(cls, features, labels, mode):
      return _build(features, labels, mode)

  return Model


def _scaled(scale, features, labels, mode):
  assert scale == 1
  return _build(features, labels, mode)


FORMS = {
    'above_a_function': lambda decorate: decorate(_plain),
    'on_a_method': lambda decorate: _in_class_body(decorate)().start,
    'on_a_static_method': lambda decorate: _in_class_body(decorate).static,
    'on_a_class_method': lambda decorate: _in_class_body(decorate).of_class,
    'bound_method': lambda decorate: decorate(_Model().method),
    'callable_object': lambda decorate: decorate(_Model()),
    'partial_positional': lambda decorate: decorate(
        functools.partial(_scaled, 1)),
    'partial_keyword': lambda decorate: decorate(
        functools.partial(_scaled, scale=1)),
    'partial_above': lambda decorate: functools.partial(decorate(_plain)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', FORMS)
def test_every_form_of_use(name, form):
  _check(FORMS[form](DECORATE[name]), _one_step(name))


def _all(features, labels, mode, params, config):
  assert params == {'a': 1} and config.tf_random_seed == 7
  return _build(features, labels, mode)


def _another_order(mode, features, config, labels):
  assert config.tf_random_seed == 7
  return _build(features, labels, mode)


def _keyword_only(features, labels, *, params, mode):
  assert params == {'a': 1}
  return _build(features, labels, mode)


def _with_defaults(features, labels=None, mode='infer', params=None):
  assert params == {'a': 1}
  return _build(features, labels, mode)


SIGNATURES = {
    'all': (_all, _input_fn),
    'another_order': (_another_order, _input_fn),
    'keyword_only': (_keyword_only, _input_fn),
    'with_defaults': (_with_defaults, _input_fn),
    'features': (lambda features: _build(features), _without_labels),
    'features_mode': (
        lambda features, mode: _build(features, mode=mode), _without_labels),
    'features_labels': (
        lambda features, labels: _build(features, labels), _input_fn),
    'features_params': (lambda features, params: _build(
        features, mode=ModeKeys.TRAIN if params['a'] else None),
                        _without_labels),
    'features_config': (lambda features, config: _build(
        features, mode=ModeKeys.TRAIN if config.is_chief else None),
                        _without_labels),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize('signature', SIGNATURES)
def test_every_subset_of_the_arguments(name, signature):
  model_fn, input_fn = SIGNATURES[signature]
  params = {'a': 1}
  _check(DECORATE[name](model_fn), _one_step(name), input_fn,
         params if 'params' in model_fn.__code__.co_varnames else None)
  assert params == {'a': 1}


@pytest.mark.parametrize('by_position', (True, False))
def test_arguments_by_position_and_by_keyword(name, by_position):
  decorated = DECORATE[name](_plain)
  with tf.Graph().as_default(), tf1.Session() as session:
    features = {'x': tf.constant(X, tf.float32)}
    spec = (decorated(features, None, ModeKeys.PREDICT) if by_position else
            decorated(mode=ModeKeys.PREDICT, labels=None, features=features))
    session.run(tf1.global_variables_initializer())
    np.testing.assert_allclose(
        session.run(spec.predictions['y']), X @ START[:2] + START[2])


@pytest.mark.parametrize('style', decorated_models.STYLES)
def test_every_way_to_apply_an_optimizer(behavior, name, style):
  values = decorated_models.train(
      DECORATE[name](decorated_models.regression(style, _sgd)), 1)
  prefix = 'global_center_variable/' if name == 'elastic_average' else ''
  np.testing.assert_allclose(
      np.concatenate([values[f'{prefix}weight'], [values[f'{prefix}bias']]]),
      _one_step(name, style), rtol=1e-5)


def test_optimizer_is_made_anywhere(behavior, name):
  """In scopes, after the moving mean's update: momentum 0 takes the batch's."""

  def model_fn(features, labels, mode):
    norm = tf1.keras.layers.BatchNormalization(momentum=0.0, name='norm')
    norm(features['x'], training=True)
    updates = [tf.group(*norm.get_updates_for(features['x']))]
    with tf1.variable_scope('a'), tf.name_scope('b'), \
        tf1.control_dependencies(updates):
      return _build(features, labels, mode)

  estimator = _check(DECORATE[name](model_fn), _one_step(name), scope='a/')
  share = MOVING_RATE if name == 'elastic_average' else 1.0
  np.testing.assert_allclose(estimator.get_variable_value('norm/moving_mean'),
                             share * X.mean(axis=0), rtol=1e-5)


def test_evaluates_predicts_and_exports_what_was_trained(behavior, name,
                                                         tmp_path):
  expected = _one_step(name)
  estimator = _check(DECORATE[name](_plain), expected)
  y = X @ expected[:2] + expected[2]
  assert estimator.evaluate(_input_fn)['loss'] == pytest.approx(
      np.mean((y - Y)**2), rel=1e-5)
  predicted = [row['y'] for row in estimator.predict(_input_fn)]
  np.testing.assert_allclose(predicted, y, rtol=1e-5)

  def receiver():
    x = {'x': tf1.placeholder(tf.float32, [None, 2], name='x')}
    return tf.estimator.export.ServingInputReceiver(x, x)

  path = estimator.export_saved_model(str(tmp_path), receiver).decode()
  with tf.Graph().as_default(), tf1.Session() as session:
    loaded = tf1.saved_model.load(session, ['serve'], path)
    served = loaded.signature_def['serving_default'].outputs
    output = next(iter(served.values())).name
    np.testing.assert_allclose(
        session.run(output, {'x:0': X[:3]}), y[:3], rtol=1e-5)


class _Counting(tf1.train.SessionRunHook):
  """Counts the steps that it sees."""

  def __init__(self):
    self.steps = 0

  def after_run(self, run_context, run_values):
    self.steps += 1


def test_users_hooks_scaffold_and_saver_are_kept(behavior, name):
  """init_fn sets the weight; a local variable starts; one variable is saved."""
  hooks, specs, started = [], [], []

  class StartedHook(_Counting):

    def begin(self):
      self.flag, = [v.read_value() for v in tf1.local_variables()
                    if v.op.name == 'flag']

    def after_run(self, run_context, run_values):
      started.append(run_context.session.run(self.flag))

  def init_fn(scaffold, session):
    del scaffold
    weight, = [v for v in tf1.trainable_variables() if v.op.name == 'weight']
    weight.load([[1.0], [2.0]], session)

  def model_fn(features, labels, mode):
    spec = _build(features, labels, mode)
    flag = tf1.get_local_variable('flag', initializer=5.0)
    hooks.append([StartedHook(), _Counting(), _Counting()])
    specs.append(spec._replace(
        training_hooks=tuple(hooks[-1][:2]),
        training_chief_hooks=(hooks[-1][2],),
        scaffold=tf1.train.Scaffold(
            init_fn=init_fn, local_init_op=flag.initializer,
            saver=tf1.train.Saver(
                [v for v in tf1.global_variables()
                 if v.op.name.split('/')[-1] in ('weight', 'global_step')]))))
    specs.append(tuple(specs[-1]))
    return specs[-2]

  estimator = tf.estimator.Estimator(DECORATE[name](model_fn))
  estimator.train(_input_fn, steps=1)
  expected = _one_step(name, start=np.array([[1.0], [2.0], [0.125]]))[:2]
  np.testing.assert_allclose(
      estimator.get_variable_value('weight'), expected, rtol=1e-5)
  assert sorted(estimator.get_variable_names()) == ['global_step', 'weight']
  # Of towers and shards it is the first one that counts.
  assert [hook.steps for hook in hooks[0][1:]] == [1, 1]
  assert started == [5.0]
  # What the model_fn returned is as it was.
  assert tuple(specs[0]) == specs[1]


@pytest.mark.parametrize('task_type, looks', [('worker', 1), ('chief', 0)])
@pytest.mark.parametrize('name', [
    'elastic_average', 'drop_stale_gradients', 'clip_variables'])
def test_a_worker_looks_often_for_the_start_after_a_failure(
    behavior, monkeypatch, name, task_type, looks):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['localhost:1'] for job in ('chief', 'ps', 'worker')},
      'task': {'type': task_type, 'index': 0}}))
  model_fn = DECORATE[name](decorated_models.regression('minimize'))
  with tf.Graph().as_default() as graph:
    tf1.train.get_or_create_global_step()
    model_fn(tf.ones([1, 2]), tf.ones([1, 1]), ModeKeys.TRAIN,
             config=tf.estimator.RunConfig())
    # TensorFlow alone looks every 30 s.
    assert len(graph.get_collection(
        tf1.GraphKeys.READY_FOR_LOCAL_INIT_OP)) == looks
