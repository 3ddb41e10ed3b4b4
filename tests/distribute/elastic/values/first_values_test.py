# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pretrained weights, which are written before the first step."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator as estimator_lib

tf1 = tf.compat.v1

_SETTINGS = {'communication_period': 1, 'moving_rate': 0.25}
STRATEGIES = {
    'decorator': lambda: None,
    'strategy': lambda: distribute.ElasticAverageStrategy(**_SETTINGS),
    'devices': lambda: distribute.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'], **_SETTINGS),
}


def _pretrained(tmp_path):
  """A checkpoint in which `w` is 5."""
  with tf.Graph().as_default(), tf1.Session() as session:
    w = tf1.get_variable('w', initializer=[5.0, 5.0])
    session.run(w.initializer)
    return tf1.train.Saver([w]).save(session, str(tmp_path / 'pretrained'))


def _fed(w, path):
  del path
  value = tf1.placeholder(tf.float32, [2])
  assign = w.assign(value)
  return lambda session: session.run(assign, {value: [5.0, 5.0]})


def _saver(w, path):
  saver = tf1.train.Saver([w])
  return lambda session: saver.restore(session, path)


WRITERS = {'fed': _fed, 'saver': _saver}


class _Hook(tf1.train.SessionRunHook):
  """Writes when a session is there; notes the copy of each step."""

  def __init__(self, write=None, fetch=None):
    self._write = write
    self._fetch = fetch
    self.seen = []

  def after_create_session(self, session, coord):
    if self._write:
      self._write(session)

  def before_run(self, run_context):
    return tf1.train.SessionRunArgs(self._fetch)

  def after_run(self, run_context, run_values):
    self.seen.append(run_values.results)


def _train(tmp_path, form, writer, where):
  """Trains two steps with a gradient of 0; returns the copies and `w`."""
  hooks = []

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=[0.0, 0.0])
    write = WRITERS[writer](w, path)
    hooks.append(_Hook(write if where == 'hook' else None, w.value()))
    loss = tf.reduce_sum(w * features) * 0.0
    scaffold = None
    if where == 'init_fn':
      scaffold = tf1.train.Scaffold(
          init_fn=lambda scaffold, session: write(session))
    elif where == 'init_op':
      with tf1.control_dependencies([tf1.global_variables_initializer()]):
        scaffold = tf1.train.Scaffold(init_op=tf.group(w.assign([5.0, 5.0])))
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, scaffold=scaffold, training_hooks=[hooks[-1]],
        train_op=tf1.train.GradientDescentOptimizer(1.0).minimize(
            loss, tf1.train.get_global_step()))

  path = _pretrained(tmp_path)
  if form == 'decorator':
    model_fn = estimator_lib.elastic_average(**_SETTINGS)(model_fn)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path / 'model'), tf1.estimator.RunConfig(
          train_distribute=STRATEGIES[form]()))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(([1.0, 1.0], [1.0])).repeat(),
      steps=2)
  return [copy for hook in hooks for copy in hook.seen], (
      estimator.get_variable_value('w'))


@pytest.mark.parametrize('where', ['init_fn', 'hook'])
@pytest.mark.parametrize('writer', WRITERS)
@pytest.mark.parametrize('form', STRATEGIES)
def test_what_is_written_before_the_first_step_is_everywhere(
    form, writer, where, tmp_path, behavior):
  del behavior
  copies, w = _train(tmp_path, form, writer, where)
  np.testing.assert_array_equal(w, [5.0, 5.0])
  np.testing.assert_array_equal(copies, np.full_like(copies, 5.0))


@pytest.mark.parametrize('form', STRATEGIES)
def test_what_an_init_op_of_the_program_writes_is_everywhere(
    form, tmp_path, behavior):
  del behavior
  copies, w = _train(tmp_path, form, 'fed', 'init_op')
  np.testing.assert_array_equal(w, [5.0, 5.0])
  np.testing.assert_array_equal(copies, np.full_like(copies, 5.0))


@pytest.mark.parametrize('rho', [0.0, 0.5])
@pytest.mark.parametrize('form', STRATEGIES)
def test_an_init_op_may_initialise_centres_and_copies(
    form, rho, tmp_path, behavior):
  """All start from one random value, and nothing moves them."""
  del behavior
  settings, hooks = dict(_SETTINGS, rho=rho), []

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', [2], initializer=tf1.random_normal_initializer())
    hooks.append(_Hook(fetch=w.value()))
    loss = tf.reduce_sum(w * features) * 0.0
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(
        loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, training_hooks=[hooks[-1]],
        scaffold=tf1.train.Scaffold(init_op=tf.group(
            tf1.global_variables_initializer(),
            tf1.local_variables_initializer())))

  strategy = {'decorator': lambda: None,
              'strategy': lambda: distribute.ElasticAverageStrategy(**settings),
              'devices': lambda: distribute.ElasticAverageStrategy(
                  devices=['/cpu:0', '/cpu:1'], **settings)}[form]()
  if form == 'decorator':
    model_fn = estimator_lib.elastic_average(**settings)(model_fn)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path), tf1.estimator.RunConfig(
          train_distribute=strategy))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(([1.0, 1.0], [1.0])).repeat(),
      steps=2)
  w = estimator.get_variable_value('w')
  assert w.all()
  for hook in hooks:
    np.testing.assert_array_equal(hook.seen, [w] * len(hook.seen))
  assert any(hook.seen for hook in hooks)


class _Later(_Hook):
  """Writes after the first step."""

  def after_create_session(self, session, coord):
    del session, coord

  def after_run(self, run_context, run_values):
    super().after_run(run_context, run_values)
    if len(self.seen) == 1:
      self._write(run_context.session)


@pytest.mark.parametrize('form', STRATEGIES)
def test_what_is_written_later_is_a_copys_alone_and_is_averaged(
    form, tmp_path, behavior):
  """Weight surgery in a hook: the copy is 5, and moves towards the centre, 0.

  By a quarter: 5 and 0, then 3.75 and 1.25. Of two devices the first one's
  copy is written, whose hooks are run; that of the other is 0 as the centre.
  """
  del behavior
  hooks = []

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=[0.0, 0.0])
    hooks.append(_Later(_fed(w, None), w.value()))
    loss = tf.reduce_sum(w * features) * 0.0
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, training_hooks=[hooks[-1]],
        train_op=tf1.train.GradientDescentOptimizer(1.0).minimize(
            loss, tf1.train.get_global_step()))

  estimator = tf1.estimator.Estimator(
      estimator_lib.elastic_average(**_SETTINGS)(model_fn)
      if form == 'decorator' else model_fn, str(tmp_path),
      tf1.estimator.RunConfig(train_distribute=STRATEGIES[form]()))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(([1.0, 1.0], [1.0])).repeat(),
      max_steps=2)
  np.testing.assert_array_equal(
      estimator.get_variable_value('w'), [1.25, 1.25])


@pytest.mark.parametrize('form', ['decorator', 'strategy', 'devices'])
@pytest.mark.parametrize('steps', [2, 3])
def test_a_training_without_an_exchange_is_told(form, steps, tmp_path, caplog):
  settings = {'communication_period': 3, 'count_steps': 'local'}

  def model_fn(features, labels, mode):
    del labels
    loss = tf1.get_variable('w', initializer=0.0) * features
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=tf1.train.GradientDescentOptimizer(1.0).minimize(
            loss, tf1.train.get_global_step()))

  if form == 'decorator':
    model_fn, strategy = estimator_lib.elastic_average(
        model_fn, **settings), None
  else:
    strategy = distribute.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'] if form == 'devices' else None, **settings)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path), tf1.estimator.RunConfig(
          train_distribute=strategy))
  estimator.train(lambda: tf.data.Dataset.from_tensors((-1.0, 1.0)).repeat(),
                  steps=steps)
  assert (estimator.get_variable_value('w') == 0) == (steps == 2)
  assert ('ended after 2 local steps, before the first exchange'
          in caplog.text) == (steps == 2)


class _TrainingHook(tf1.train.SessionRunHook):
  """Runs train ops before each step, as the hooks of TF-GAN do."""

  def __init__(self, train_op):
    self._train_op = train_op

  def before_run(self, run_context):
    run_context.session.run(self._train_op)


@pytest.mark.parametrize('period', [1, 2])
@pytest.mark.parametrize('form', ['decorator', 'strategy'])
def test_training_in_a_hook_is_averaged_from_the_first_step(
    form, period, tmp_path, behavior):
  """The step itself only counts."""
  del behavior
  settings = {'communication_period': period, 'moving_rate': 0.25,
              'count_steps': 'local'}

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=8.0)
    loss = tf.reduce_mean(features) * w * w
    train_op = tf1.train.GradientDescentOptimizer(0.125).minimize(
        loss, var_list=[w])
    with tf1.control_dependencies([loss]):
      count = tf1.assign_add(tf1.train.get_global_step(), 1)
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=count,
        training_hooks=[_TrainingHook(train_op)])

  strategy = None
  if form == 'decorator':
    model_fn = estimator_lib.elastic_average(**settings)(model_fn)
  else:
    strategy = distribute.ElasticAverageStrategy(**settings)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path), tf1.estimator.RunConfig(
          train_distribute=strategy))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(), steps=4)
  copy = center = 8.0
  for step in range(4):
    copy -= 0.125 * 2 * copy
    if (step + 1) % period == 0:
      moved = 0.25 * (copy - center)
      copy, center = copy - moved, center + moved
  np.testing.assert_allclose(estimator.get_variable_value('w'), center,
                             rtol=1e-6)
