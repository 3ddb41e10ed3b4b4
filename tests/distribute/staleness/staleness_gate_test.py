# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of deciding what is stale."""

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.staleness import staleness_gate

tf1 = tf.compat.v1


def overtaken_gradient(step, by):
  """A gradient that arrives `by` steps after its variable was read."""
  w = tf1.get_variable(f'w{by}', initializer=1.0)
  value = w + 0.0
  with tf.control_dependencies([value]):
    advance = tf1.assign_add(step, by)
  with tf.control_dependencies([advance]):
    gradient = tf.identity(value)
  return gradient


def run(*fetches):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    return session.run(fetches)


@pytest.mark.parametrize('late, want', [(2, True), (3, False)])
def test_a_gradient_passes_up_to_the_bound(behavior, late, want):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gate = staleness_gate.StalenessGate(2)
    gate.decide(step, [overtaken_gradient(step, late)])
    assert run(*gate.decision[:3]) == (0, late, want)


def test_a_given_reading_is_taken(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gate = staleness_gate.StalenessGate(2)
    gate.decide(step, [tf.constant(1.0)], tf.constant(-3, tf.int64))
    assert run(*gate.decision[1:3]) == (3, False)


def test_no_gradient_is_refused():
  gate = staleness_gate.StalenessGate(2)
  with pytest.raises(ValueError, match='must hold a gradient'):
    gate.decide(tf.Variable(0), [])


def test_each_decision_is_new_but_one_decision_holds_in_its_graph(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    late = overtaken_gradient(step, 3)
    with tf.control_dependencies([late]):
      gradients = tf.constant(1.0), tf.constant(2.0)
    anew = staleness_gate.StalenessGate(2)
    once = staleness_gate.OneDecision(2)
    assert once.accepted_here is None
    for gate in (anew, once):
      gate.decide(step, gradients[:1])
    first = anew.decision.accepted, once.decision.accepted
    for gate in (anew, once):
      gate.decide(step, gradients[1:])
    assert anew.decision.accepted is not first[0]
    assert once.decision.accepted is once.accepted_here is first[1]
  with tf.Graph().as_default():
    assert once.accepted_here is None


def test_later_gradients_of_one_decision_read_after_its_reading(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    gate, readings = staleness_gate.OneDecision(2), []
    for name in ('a', 'b'):
      v = tf1.get_variable(name, initializer=1.0, use_resource=True)
      gradient = tf.raw_ops.ReadVariableOp(resource=v.handle, dtype=tf.float32)
      gate.decide(step, [gradient])
      readings += gradient.op.control_inputs
    assert readings == [gate.decision.reading.op] * 2


def _sync(optimizer):
  return tf1.train.SyncReplicasOptimizer(optimizer, 1, total_num_replicas=1)


def _drop(optimizer):
  return tfplugin.DropStaleGradientOptimizer(optimizer, 4)


def _clip(optimizer):
  return tfplugin.VariableClippingOptimizer(optimizer, {'w': []}, 1.0)


def _train(wrap, decorate=lambda model_fn: model_fn, strategy=None):
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    loss = w * tf.reduce_mean(features)
    optimizer = wrap(tf1.train.GradientDescentOptimizer(0.5))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(
            loss, tf1.train.get_global_step()))

  tf.estimator.Estimator(
      decorate(model_fn), config=tf.estimator.RunConfig(
          train_distribute=strategy)).train(
              lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])), steps=1)


_DECORATE = tfplugin.estimator.drop_stale_gradients(staleness=4)


@pytest.mark.parametrize('train', [
    lambda: _train(lambda opt: _drop(_sync(opt))),
    lambda: _train(lambda opt: _drop(_clip(_sync(opt)))),
    lambda: _train(lambda opt: _sync(_drop(opt))),
    lambda: _train(lambda opt: _sync(_clip(_drop(opt)))),
    lambda: _train(_sync, _DECORATE),
    lambda: _train(lambda opt: _clip(_sync(opt)), _DECORATE),
    lambda: _train(lambda opt: _sync(_drop(opt)), _DECORATE),
    lambda: _train(_sync, strategy=tfplugin.distribute.
                   DropStaleGradientStrategy(staleness=4)),
], ids=['inside', 'deeper', 'outside', 'farther', 'decorator', 'clipped',
        'own', 'strategy'])
def test_a_synchronous_optimizer_is_refused_by_name(train, behavior):
  with pytest.raises(RuntimeError, match=(
      'SyncReplicasOptimizer` must not be used with drop stale.*'
      'Leave out one of the two')):
    train()


def test_an_accumulator_of_the_model_is_not_refused(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=4.0)
    step = tf1.train.create_global_step()
    accumulator = tf1.ConditionalAccumulator(tf.float32, shape=[])
    with tf.control_dependencies([accumulator.apply_grad(3.0)]):
      gradient = accumulator.take_grad(1)
    train_op = _drop(tf1.train.GradientDescentOptimizer(0.5)).apply_gradients(
        [(gradient, w)], step)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      session.run(train_op)
      assert session.run((w, step)) == (2.5, 1)
