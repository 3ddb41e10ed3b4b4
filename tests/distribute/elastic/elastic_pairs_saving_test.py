# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The swapping saver writes centres under the names of the model."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1


class _Model:
  """A whole and a partitioned variable; copies and centres are set apart."""

  def __init__(self, use_resource=None):
    self.getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with tf1.variable_scope('', custom_getter=self.getter,
                            use_resource=use_resource):
      self.w = tf1.get_variable('w', initializer=[50.0, 60.0])
      self.table = tf1.get_variable(
          't', [4], initializer=tf1.zeros_initializer(),
          partitioner=tf1.fixed_size_partitioner(2))
    self.step = tf1.train.create_global_step()
    self.optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.MomentumOptimizer(0.1, 0.9), 1, self.getter, rho=0.0)
    self.train = self.optimizer.minimize(
        tf.reduce_sum(self.w) + tf.reduce_sum(tf.convert_to_tensor(self.table)),
        self.step)

  def start(self, session):
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    session.run(self.getter.pair_of(self.w).center.assign([0.95, 1.95]))
    for i, part in enumerate(self.table):
      session.run(self.getter.pair_of(part).center.assign([i, i + 0.5]))


def _saved(path):
  reader = tf.train.load_checkpoint(path)
  return {name: reader.get_tensor(name)
          for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize('use_resource', [False, True])
def test_saves_what_the_plain_model_would(behavior, tmp_path, use_resource):
  if behavior == 'v2' and not use_resource:
    pytest.skip('control flow v2 takes no reference variables')
  with tf.Graph().as_default(), tf1.Session() as session:
    model = _Model(use_resource)
    model.start(session)
    path = model.optimizer.swapping_saver().save(session, str(tmp_path / 'c'))
  saved = _saved(path)
  assert set(saved) == {'w', 't', 'global_step', 'w/Momentum', 't/Momentum'}
  np.testing.assert_allclose(saved['w'], [0.95, 1.95])
  np.testing.assert_array_equal(saved['t'], [0.0, 0.5, 1.0, 1.5])


@pytest.mark.parametrize('make_list, names', [
    (lambda m: [m.w], {'w'}),
    (lambda m: [m.table], {'t'}),
    (lambda m: list(m.table), {'t'}),
    (lambda m: {'x': m.w, 'y': m.table}, {'x', 'y'}),
    (lambda m: {'x': m.w, 's': m.step}, {'x', 's'})])
def test_var_list(behavior, tmp_path, make_list, names):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    model = _Model()
    model.start(session)
    saver = model.optimizer.swapping_saver(make_list(model), max_to_keep=1)
    path = saver.save(session, str(tmp_path / 'c'))
  saved = _saved(path)
  assert set(saved) == names
  for name, value in saved.items():
    expected = {'w': [0.95, 1.95], 'x': [0.95, 1.95], 's': 0}.get(
        name, [0.0, 0.5, 1.0, 1.5])
    np.testing.assert_allclose(value, expected)


def test_checkpoint_of_the_bare_model_is_restored_into_the_center(
    behavior, tmp_path):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    w = tf1.get_variable('w', initializer=[7.0, 8.0])
    table = tf1.get_variable('t', initializer=[1.0, 2.0, 3.0, 4.0])
    step = tf1.train.create_global_step()
    tf1.train.MomentumOptimizer(0.1, 0.9).minimize(
        tf.reduce_sum(w) + tf.reduce_sum(table), step)
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(tmp_path / 'bare'))
  with tf.Graph().as_default(), tf1.Session() as session:
    model = _Model()
    model.start(session)
    init = model.optimizer.get_init_op(0)
    model.optimizer.swapping_saver().restore(session, path)
    np.testing.assert_array_equal(session.run(model.w), [50.0, 60.0])
    session.run(init)
    np.testing.assert_array_equal(session.run(model.w), [7.0, 8.0])
    np.testing.assert_array_equal(
        np.ravel(session.run(list(model.table))), [1.0, 2.0, 3.0, 4.0])


class _Moving(tf1.train.MomentumOptimizer):
  """Averages what it applies, as contrib's MovingAverageOptimizer did."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    grads_and_vars = list(grads_and_vars)
    count = tf1.get_variable('count', initializer=0.0, trainable=False)
    updates = [super().apply_gradients(grads_and_vars, global_step),
               count.assign_add(1.0)]
    with tf1.control_dependencies(updates):
      return tf1.train.ExponentialMovingAverage(0.5).apply(
          [variable for _, variable in grads_and_vars])


def test_state_that_an_optimizer_lists_nowhere_is_saved(behavior, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with tf1.variable_scope('', custom_getter=getter, use_resource=True):
      w = tf1.get_variable('w', initializer=8.0)
    optimizer = elastic_average.ElasticAverageOptimizer(
        _Moving(1.0, 0.0), 1, getter, rho=0.0)
    train = optimizer.minimize(w * 2.0)
    init = optimizer.get_init_op(0)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    session.run(init)
    session.run(train)
    path = optimizer.swapping_saver().save(session, str(tmp_path / 'c'))
    assert set(optimizer.optimizer_state()) == {
        'w/Momentum', 'count', 'w/ExponentialMovingAverage'}
  # The copy is at 6; the centre and, half of the way there, the average.
  assert _saved(path) == {'w': 8.0, 'w/Momentum': 2.0, 'count': 1.0,
                          'w/ExponentialMovingAverage': 7.0}


_STACKS = {
    'bare': lambda opt: opt,
    'drop': lambda opt: tfplugin.DropStaleGradientOptimizer(opt, 3),
    'clip(drop)': lambda opt: tfplugin.VariableClippingOptimizer(
        tfplugin.DropStaleGradientOptimizer(opt, 3), {'w': 0}, 1e3),
    'elastic(drop)': lambda opt: tfplugin.DropStaleGradientOptimizer(opt, 3),
}


def _stack(kind, session):
  """Builds one of `_STACKS` on w = 8; returns w, train op, saver and start."""
  getter = elastic_custom_getter.ElasticAverageCustomGetter('')
  is_elastic = kind.startswith('elastic')
  with tf1.variable_scope('', custom_getter=getter if is_elastic else None):
    w = tf1.get_variable('w', initializer=[8.0])
  opt = _STACKS[kind](tf1.train.MomentumOptimizer(0.25, 0.0))
  start = tf.no_op()
  if is_elastic:
    opt = elastic_average.ElasticAverageOptimizer(
        opt, 1, getter, communication_period=1, moving_rate=0.0, rho=0.0)
  train = opt.minimize(tf.reduce_sum(w * w) / 2,
                       tf1.train.get_or_create_global_step())
  saver = opt.swapping_saver() if is_elastic else tf1.train.Saver()
  if is_elastic:
    start = opt.get_init_op(0)
  session.run([tf1.global_variables_initializer(),
               tf1.local_variables_initializer()])
  return w, train, saver, start


@pytest.mark.parametrize('kind', ['drop', 'clip(drop)'])
def test_a_checkpoint_moves_into_and_out_of_a_stack_that_drops(
    behavior, tmp_path, kind):
  paths = {}
  for name in (kind, 'elastic(drop)'):
    with tf.Graph().as_default(), tf1.Session() as session:
      w, train, saver, start = _stack(name, session)
      session.run(start)
      session.run(train)
      paths[name] = saver.save(session, str(tmp_path / name))
    assert set(_saved(paths[name])) == {
        'w', 'w/Momentum', 'global_step', 'stale_counter'}
  # The centre stays where it was with moving_rate 0: 8; the copy is at 6.
  for name, path, expected in (
      ('elastic(drop)', paths[kind], 6 * 0.75),
      (kind, paths['elastic(drop)'], 8 * 0.75),
      ('bare', paths['elastic(drop)'], 8 * 0.75)):
    with tf.Graph().as_default(), tf1.Session() as session:
      w, train, saver, start = _stack(name, session)
      saver.restore(session, path)
      session.run(start)
      session.run(train)
      np.testing.assert_array_equal(session.run(w), [expected])


def _momentum_model_fn(features, labels, mode, params, config):
  """One variable with a gradient of 1, in the plain or the elastic form."""
  del labels
  getter = elastic_custom_getter.ElasticAverageCustomGetter('')
  with getter.scope() if params['is_elastic'] else contextlib.nullcontext():
    w = tf1.get_variable('w', initializer=0.0)
  optimizer = tf1.train.MomentumOptimizer(1.0, 0.9)
  scaffold, hooks = None, []
  if params['is_elastic']:
    optimizer = elastic_average.ElasticAverageOptimizer(
        optimizer, 1, getter, communication_period=3, rho=0.0,
        count_steps='local')
  train_op = optimizer.minimize(tf.reduce_mean(features) * w,
                                tf1.train.get_global_step())
  if params['is_elastic']:
    scaffold = tf1.train.Scaffold(saver=optimizer.swapping_saver())
    if params['has_hook']:
      hooks = [optimizer.make_session_run_hook(config.is_chief, 0)]
  return tf.estimator.EstimatorSpec(
      mode, loss=tf.reduce_mean(features) * w, train_op=train_op,
      scaffold=scaffold, training_hooks=hooks)


@pytest.mark.parametrize('forms', [
    [(True, True)] * 3, [(True, False)] * 2, [(False, False), (True, True)],
    [(True, True), (False, False)]], ids=str)
def test_training_continues_with_the_optimizer_state(
    behavior, tmp_path, forms):
  del behavior
  for is_elastic, has_hook in forms:
    estimator = tf.estimator.Estimator(
        _momentum_model_fn, str(tmp_path), tf.estimator.RunConfig(
            save_summary_steps=None, log_step_count_steps=None),
        {'is_elastic': is_elastic, 'has_hook': has_hook})
    estimator.train(
        lambda: tf.data.Dataset.from_tensors(tf.ones([1])).repeat(3))
  steps = 3 * len(forms)
  assert estimator.get_variable_value('global_step') == steps
  np.testing.assert_allclose(estimator.get_variable_value('w/Momentum'),
                             sum(0.9 ** k for k in range(steps)), rtol=1e-6)


def test_refuses_what_is_no_variable():
  with tf.Graph().as_default():
    model = _Model()
    with pytest.raises(TypeError, match='`var_list` must hold variables'):
      model.optimizer.swapping_saver(['w'])
    with pytest.raises(ValueError, match='two variables of one name'):
      with tf.Graph().as_default():
        other = tf1.get_variable('w', [1])
      model.optimizer.swapping_saver([model.w, other])
