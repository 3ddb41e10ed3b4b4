# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the start, the checkpoints and the summary of elastic averaging."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import hooks
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

_CONFIG = {'save_summary_steps': None, 'log_step_count_steps': None}
_ADAM = {'w/Adam', 'w/Adam_1', 'beta1_power', 'beta2_power'}


def _adam():
  return tf1.train.AdamOptimizer(0.1)


def _input_fn(steps=12):
  x = np.array([[1.0], [2.0]], np.float32)
  return tf.data.Dataset.from_tensors(({'x': x}, 3 * x)).repeat(steps)


def _loss(features, labels):
  w = tf1.get_variable('w', initializer=[[1.0]])
  mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
  y = tf.matmul(features['x'], w)
  update = mean.assign(2 * tf.reduce_mean(features['x'] ** 2))  # 5.0
  loss = None if labels is None else tf.reduce_mean((y - labels) ** 2)
  return y, loss, update


def _plain_model_fn(features, labels, mode, params):
  y, loss, update = _loss(features, labels)
  train_op = None
  if mode == tf.estimator.ModeKeys.TRAIN:
    with tf1.control_dependencies([update]):
      train_op = params['opt']().minimize(loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, {'y': y}, loss, train_op)


def _elastic_model_fn(features, labels, mode, params, config):
  getter = elastic_custom_getter.ElasticAverageCustomGetter('')
  with tf1.variable_scope('', custom_getter=getter):
    _, loss, update = _loss(features, labels)
  optimizer = elastic_average.ElasticAverageOptimizer(
      params['opt'](), 1, getter, communication_period=3, moving_rate=0.5,
      rho=0.0)
  with tf1.control_dependencies([update]):
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  saver = optimizer.swapping_saver()
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      scaffold=tf1.train.Scaffold(saver=saver),
      training_hooks=[optimizer.make_session_run_hook(True, 0)],
      training_chief_hooks=[
          hooks.ElasticCheckpointHook(optimizer, config.model_dir, saver,
                                      save_steps=2),
          params['probe'](optimizer)])


class _Probe(tf1.train.SessionRunHook):
  """Keeps what is there when a session begins and when it ends."""

  def __init__(self, optimizer, seen):
    self._state, self._seen = optimizer.optimizer_state(), seen
    self._center = [v for v in tf1.global_variables()
                    if v.op.name == 'global_center_variable/w']

  def after_create_session(self, session, coord):
    self._seen['begin'] = session.run([self._state, self._center])

  def end(self, session):
    self._seen['end'] = session.run([self._state, self._center])


def _estimator(model_fn, model_dir, opt, seen=None):
  return tf.estimator.Estimator(
      model_fn, str(model_dir), tf.estimator.RunConfig(**_CONFIG),
      params={'opt': opt, 'probe': lambda o: _Probe(o, seen)})


@pytest.mark.parametrize('opt, slots', [
    (_adam, _ADAM),
    (lambda: tf1.train.GradientDescentOptimizer(0.01), set())])
def test_plain_estimator_on_the_same_model_dir(behavior, tmp_path, opt, slots):
  del behavior
  seen = {}
  _estimator(_elastic_model_fn, tmp_path / 'm', opt, seen).train(_input_fn)
  plain = _estimator(_plain_model_fn, tmp_path / 'm', opt)
  assert set(plain.get_variable_names()) == slots | {'w', 'mean', 'global_step'}
  assert plain.get_variable_value('global_step') == 4  # 12 / 3
  w = plain.get_variable_value('w')
  np.testing.assert_array_equal(w, seen['end'][1][0])
  assert 1.0 < w[0, 0] < 3.0
  # From 0 in four exchanges, at 5 each time: 5 * (1 - .5**4).
  np.testing.assert_allclose(plain.get_variable_value('mean'), 4.6875)
  # Mean of x**2 is 2.5.
  loss = plain.evaluate(_input_fn, steps=1)['loss']
  np.testing.assert_allclose(loss, 2.5 * (3 - w[0, 0]) ** 2, rtol=1e-5)
  predicted = [p['y'] for p in plain.predict(lambda: _input_fn(1))]
  np.testing.assert_allclose(np.ravel(predicted), [w[0, 0], 2 * w[0, 0]],
                             rtol=1e-6)

  def receiver_fn():
    x = {'x': tf1.placeholder(tf.float32, [None, 1])}
    return tf.estimator.export.ServingInputReceiver(x, x)

  path = plain.export_saved_model(str(tmp_path / 'e'), receiver_fn)
  assert tf.saved_model.contains_saved_model(path.decode())
  plain.train(_input_fn)
  assert plain.get_variable_value('global_step') == 16
  assert abs(plain.get_variable_value('w')[0, 0] - 3) < abs(w[0, 0] - 3)


def test_resumed_training_has_the_center_and_the_optimizer_state(
    behavior, tmp_path):
  del behavior
  first, second = {}, {}
  _estimator(_elastic_model_fn, tmp_path, _adam, first).train(_input_fn)
  elastic = _estimator(_elastic_model_fn, tmp_path, _adam, second)
  elastic.train(_input_fn)
  tf.nest.map_structure(np.testing.assert_array_equal,
                        second['begin'], first['end'])
  assert first['end'][0]['w/Adam'][0, 0] != 0
  np.testing.assert_allclose(second['end'][0]['beta1_power'], 0.9 ** 25,
                             rtol=1e-5)
  assert elastic.get_variable_value('global_step') == 8


class _Aborting(_Probe):
  """Loses the session once, at global step 2, of which is a checkpoint."""

  def after_run(self, run_context, run_values):
    session, seen = run_context.session, self._seen
    if 'lost' not in seen and session.run(tf1.train.get_global_step()) == 2:
      seen['lost'] = session.run([self._state, self._center])
      raise tf.errors.AbortedError(None, None, 'The session is lost.')

  def after_create_session(self, session, coord):
    super().after_create_session(session, coord)
    self._seen.setdefault('first', self._seen['begin'])


def test_a_session_after_the_first_save_has_the_optimizer_state(tmp_path):
  seen = {}
  tf.estimator.Estimator(
      _elastic_model_fn, str(tmp_path), tf.estimator.RunConfig(**_CONFIG),
      params={'opt': _adam, 'probe': lambda o: _Aborting(o, seen)}).train(
          _input_fn)
  assert seen['first'][0]['w/Adam'] == 0 != seen['lost'][0]['w/Adam']
  tf.nest.map_structure(np.testing.assert_array_equal,
                        seen['begin'], seen['lost'])


def test_elastic_training_goes_on_from_a_plain_checkpoint(behavior, tmp_path):
  del behavior
  plain = _estimator(_plain_model_fn, tmp_path, _adam)
  plain.train(_input_fn)
  seen = {}
  _estimator(_elastic_model_fn, tmp_path, _adam, seen).train(_input_fn)
  state, (center,) = seen['begin']
  np.testing.assert_allclose(state['beta1_power'], 0.9 ** 13, rtol=1e-5)
  assert center[0, 0] > 1.5


def test_before_the_model_exists():
  with tf.Graph().as_default():
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), 1,
        elastic_custom_getter.ElasticAverageCustomGetter(''))
    with pytest.raises(RuntimeError, match='Build the model first'):
      hooks.ElasticCheckpointHook(optimizer, 'nowhere')


class _Noting(tf1.train.CheckpointSaverListener):

  def __init__(self):
    self.calls = []

  def begin(self):
    self.calls.append('begin')

  def end(self, session, global_step_value):
    self.calls.append('end')


def test_listeners_that_can_be_read_once_are_called_to_the_end(tmp_path):
  listener = _Noting()
  with tf.Graph().as_default():
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with tf1.variable_scope('', custom_getter=getter):
      w = tf1.get_variable('w', initializer=1.0)
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), 1, getter, rho=0.0)
    train_op = optimizer.minimize(w * w, tf1.train.create_global_step())
    hook = hooks.ElasticCheckpointHook(
        optimizer, str(tmp_path), save_steps=1, listeners=iter([listener]))
    with tf1.train.SingularMonitoredSession([hook]) as session:
      session.run(train_op)
  assert listener.calls == ['begin', 'end']


def test_copies_take_the_value_of_the_center(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=1.0)
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), 1, getter)
    scaffold = tf1.train.Scaffold(
        init_op=getter.pairs[0].center.assign(7.0).op)
    with tf1.train.MonitoredSession(
        tf1.train.ChiefSessionCreator(scaffold),
        hooks=[hooks.ElasticAverageHook(optimizer, 0)]) as session:
      np.testing.assert_array_equal(session.run(w), 7.0)
    with pytest.raises(ValueError, match='`task_index`'):
      hooks.ElasticAverageHook(optimizer, 1)


def _events(directory):
  found = {}
  for path in pathlib.Path(directory).glob('events.*'):
    for event in tf1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        found[value.tag, event.step] = value.simple_value
  return found


def test_distance_of_each_step(behavior, tmp_path):
  del behavior
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=[0.0, 0.0])
      tf1.get_variable('mean', initializer=0.0, trainable=False)
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, getter,
        communication_period=100, rho=0.0, count_steps='local')
    train = optimizer.minimize(tf.reduce_sum(w * [3.0, 4.0]), step)
    hook = hooks.ElasticDistanceHook(optimizer, str(tmp_path), save_steps=1)
    assert not tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    with tf1.train.MonitoredSession(
        hooks=[hook, hooks.ElasticAverageHook(optimizer, 0)]) as session:
      for _ in range(3):
        session.run(train)
    tf1.summary.FileWriterCache.clear()
  events = _events(tmp_path)
  assert {tag for tag, _ in events} == {'elastic_distance'}
  # A step moves by (3, 4). Read beside the step: before or after its update.
  values = [value for _, value in sorted(events.items())]
  np.testing.assert_allclose(np.array(values) % 5.0, 0.0, atol=1e-5)
  assert max(values) in (10.0, 15.0)
