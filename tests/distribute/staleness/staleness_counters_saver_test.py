# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a decorated model that goes on from a plain checkpoint."""

import functools

import pytest
import tensorflow as tf

import tfplugin
import tfplugin.estimator
from tfplugin.distribute.staleness import staleness_counters

tf1 = tf.compat.v1


def _model_fn(features, labels, mode):
  """Takes a quarter of `weight` away in each step."""
  del features, labels
  weight = tf1.get_variable('weight', initializer=8.0)
  loss = tf.square(weight) / 2
  momentum = tf1.train.MomentumOptimizer(0.25, 0.0)
  train_op = momentum.minimize(loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _train(model_fn, model_dir):
  """Trains for two steps; returns what is saved then."""
  def input_fn():
    return tf.data.Dataset.from_tensors(([1.0, 1.0], [1.0, 1.0])).repeat()

  estimator = tf.estimator.Estimator(model_fn, str(model_dir))
  estimator.train(input_fn, steps=2)
  return {name: estimator.get_variable_value(name)
          for name in estimator.get_variable_names()}


_drop_stale = tfplugin.estimator.drop_stale_gradients(staleness=3)


def test_a_plain_model_goes_on_decorated_and_back(behavior, tmp_path):
  _train(_model_fn, tmp_path)
  plain = {'weight': 8 * 0.75**4, 'global_step': 4,
           # Without momentum it holds the last gradient.
           'weight/Momentum': 8 * 0.75**3}
  assert _train(_drop_stale(_model_fn), tmp_path) == {
      **plain, 'stale_counter': 0.0}
  assert _train(_model_fn, tmp_path)['weight'] == 8 * 0.75**6
  # The plain model has left the counter out.
  assert _train(_drop_stale(_model_fn), tmp_path)['weight'] == 8 * 0.75**8
  # Now it is there.
  assert _train(_drop_stale(_model_fn), tmp_path)['global_step'] == 10


def test_a_plain_model_goes_on_with_an_elastic_copy(tmp_path):
  _train(_model_fn, tmp_path)
  decorate = tfplugin.estimator.elastic_average(communication_period=1,
                                                moving_rate=0.5)
  values = _train(decorate(_drop_stale(_model_fn)), tmp_path)
  copy = center = 8 * 0.75**2
  for _ in range(2):
    copy *= 0.75
    difference = 0.5 * (copy - center)
    copy, center = copy - difference, center + difference
  assert values['weight'] == pytest.approx(center)
  assert values['stale_counter'] == 0.0
  assert values['global_step'] == 4


@pytest.mark.parametrize('decorate', [
    tfplugin.estimator.replicate_model_fn(devices=['/cpu:0', '/cpu:1']),
    tfplugin.estimator.cross_shard(devices=['/cpu:0', '/cpu:1']),
    tfplugin.estimator.clip_variables(rules={'weight': 0}, max_norm=9.0)])
def test_a_plain_model_goes_on_below_another_decorator(tmp_path, decorate):
  def model_fn(features, labels, mode):
    del labels
    weight = tf1.get_variable('weight', initializer=[8.0])
    loss = tf.reduce_mean(features) * tf.reduce_sum(tf.square(weight)) / 2
    train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
        loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  _train(model_fn, tmp_path)
  values = _train(decorate(_drop_stale(model_fn)), tmp_path)
  assert values['weight'] == [8 * 0.75**4]
  assert values['stale_counter'] == 0.0


def test_a_wrapper_inside_another_of_the_model_fn_is_found(tmp_path):
  def wrap(optimizer):
    return tfplugin.VariableClippingOptimizer(
        tfplugin.DropStaleGradientOptimizer(optimizer, 3), {'weight': 0}, 9.0)

  def model_fn(features, labels, mode, wrapped):
    del features, labels
    weight = tf1.get_variable('weight', initializer=[8.0])
    optimizer = tf1.train.GradientDescentOptimizer(0.25)
    train_op = (wrap(optimizer) if wrapped else optimizer).minimize(
        tf.square(weight) / 2, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(weight), train_op=train_op)

  _train(functools.partial(model_fn, wrapped=False), tmp_path)
  decorated = _drop_stale(functools.partial(model_fn, wrapped=True))
  assert _train(decorated, tmp_path)['weight'] == [8 * 0.75**4]


def test_a_counter_is_restored_where_there_is_one(behavior, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    counter = tf1.get_variable('stale_counter', initializer=0.0)
    weight = tf1.get_variable('weight', initializer=1.0)
    saver = staleness_counters.StaleCounterSaver([counter])
    saver.build()
    whole = str(tmp_path / 'whole')
    without = tf1.train.Saver([weight])
    session.run([counter.assign(5.0), weight.assign(2.0)])
    saver.save(session, whole)
    lacking = without.save(session, str(tmp_path / 'lacking'))
    for path, count in ((whole, 5.0), (lacking, 0.0)):
      session.run([counter.assign(9.0), weight.assign(9.0)])
      saver.restore(session, path)
      assert session.run([counter, weight]) == [count, 2.0]


def test_a_saver_of_the_model_fn_is_left_alone(tmp_path):
  _train(_model_fn, tmp_path)
  scaffolds = []

  def with_saver(features, labels, mode):
    scaffolds.append(tf1.train.Scaffold(saver=tf1.train.Saver(defer_build=True)))
    return _model_fn(features, labels, mode)._replace(scaffold=scaffolds[0])

  with tf.Graph().as_default():
    tf1.train.create_global_step()
    spec = _drop_stale(with_saver)(
        features=None, labels=None, mode=tf.estimator.ModeKeys.TRAIN,
        config=tf.estimator.RunConfig(str(tmp_path)))
  assert spec.scaffold is scaffolds[0]


def test_each_device_restores_its_own_variables():
  with tf.Graph().as_default() as graph:
    for task in range(2):
      with tf1.device(f'/job:ps/task:{task}'):
        tf1.get_variable(f'v{task}', initializer=1.0)
    staleness_counters.StaleCounterSaver([], sharded=True).build()
    restored = [op for op in graph.get_operations() if op.type == 'RestoreV2'
                and op.name.startswith('restore_all_but_counters')]
    assert sorted(op.device[:15] for op in restored) == [
        '/job:ps/task:0/', '/job:ps/task:1/']
