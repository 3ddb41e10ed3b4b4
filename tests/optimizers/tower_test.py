# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of TowerOptimizer outside of towers; estimator tests have the rest."""

import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1


def test_alone_it_is_the_optimizer_that_it_wraps(behavior):
  values = []
  for wrap in (lambda o: o, tfplugin.TowerOptimizer):
    with tf.Graph().as_default(), tf1.Session() as session:
      w = tf1.get_variable('w', initializer=[1.0, -2.0])
      opt = wrap(tf1.train.AdamOptimizer(.1))
      train_op = opt.minimize(tf.reduce_sum(w * w))
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      values.append({v.name: session.run(v).tolist()
                     for v in tf1.global_variables()})
      assert [v.name for v in opt.variables()]
  assert values[0] == values[1]


def test_has_been_used_knows_the_graph(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', [1])
    opt = tfplugin.TowerOptimizer(
        lambda: tf1.train.GradientDescentOptimizer(.1))
    assert not tfplugin.TowerOptimizer.has_been_used()
    opt.minimize(tf.reduce_sum(w))
    assert tfplugin.TowerOptimizer.has_been_used()
    with tf.Graph().as_default():
      assert not tfplugin.TowerOptimizer.has_been_used()


def test_applying_is_use_in_a_graph_alone(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', [1])
    opt = tfplugin.TowerOptimizer(tf1.train.GradientDescentOptimizer(.1))
    opt.apply_gradients([(tf.ones([1]), w)])
    assert tfplugin.TowerOptimizer.has_been_used()


def test_eager_execution_uses_no_graph():
  w = tf.Variable([1.0])
  opt = tfplugin.TowerOptimizer(tf1.train.GradientDescentOptimizer(.25))
  opt.apply_gradients([(tf.ones([1]), w)])
  assert w.numpy() == [0.75]
  with tf1.get_default_graph().as_default():
    assert not tfplugin.TowerOptimizer.has_been_used()


@pytest.mark.parametrize('skips', [False, True])
def test_gradients_that_are_reduced_stay_so(behavior, skips):
  """Two replicas with the gradient 1 each; by default they are added up."""
  strategy = tf.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'], tf.distribute.ReductionToOneDevice())
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:

    def replica():
      w = tf1.get_variable('w', initializer=3.0, use_resource=True)
      opt = tfplugin.TowerOptimizer(tf1.train.GradientDescentOptimizer(1.0))
      pairs = [(tf.constant(1.0), w)]
      if skips:
        return opt.apply_gradients(pairs, skip_gradients_aggregation=True)
      return opt.apply_gradients(pairs)

    train_op = strategy.experimental_local_results(strategy.run(replica))
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run(tf1.trainable_variables()[0]) == (2.0 if skips else 1.0)


@pytest.mark.parametrize('bad', (
    tf1.train.AdamOptimizer, 3, lambda: 3, tf.keras.optimizers.SGD))
def test_bad_optimizer_is_refused(bad):
  with pytest.raises(TypeError, match='`optimizer_or_optimizer_fn` must be'):
    tfplugin.TowerOptimizer(bad)


def test_outside_a_graph_it_names_the_strategy():
  w = tf.Variable(1.0)
  opt = tfplugin.TowerOptimizer(tf1.train.GradientDescentOptimizer(.1))
  with pytest.raises(RuntimeError, match='TowerStrategy'):
    opt.minimize(lambda: w * w, var_list=[w])
