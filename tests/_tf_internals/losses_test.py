# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow notes and scales losses where the functions meet it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import losses

tf1 = tf.compat.v1

_Reduction = tf1.losses.Reduction


def _gradient(value=2.0):
  variable = tf1.get_variable('v', initializer=1.0, use_resource=True)
  (gradient, _), = tf1.train.GradientDescentOptimizer(
      0.5).compute_gradients(value * variable)
  with tf1.Session() as session:
    session.run(variable.initializer)
    return session.run(gradient)


def _built(reduction=_Reduction.SUM):
  return tf1.losses.mean_squared_error([1.0], [1.0], reduction=reduction)


def _tripled(scale_loss, loss):
  return 3.0 * scale_loss(loss)


def test_optimizers_minimise_the_scaled_loss_for_a_while(behavior):
  for _ in range(2):
    with losses.losses_scaled(_tripled):
      with losses.losses_scaled(_tripled), tf.Graph().as_default():
        assert _gradient() == 6
      with tf.Graph().as_default():
        assert _gradient() == 6
    with tf.Graph().as_default():
      assert _gradient() == 2


def test_losses_note_their_reduction_for_a_while(behavior):
  keras = tf.keras.losses.MeanSquaredError('sum')
  with tf.Graph().as_default():
    assert losses.last_reduction() is None
    with losses.losses_scaled(_tripled):
      with losses.losses_scaled(_tripled):
        noted = [_built(reduction) for reduction in _Reduction.all()]
      total = keras([[1.0]], [[1.0]])
      assert losses.last_reduction() == 'sum'
      # It notes no reduction, and sums.
      pairs = tf1.losses.mean_pairwise_squared_error([[1.0]], [[1.0]])
    assert list(map(losses.reduction_of, noted)) == list(_Reduction.all())
    assert losses.reduction_of(noted[0] + 1.0) is None
    assert losses.reduction_of(total) == 'sum'
    assert losses.reduction_of(pairs) == _Reduction.SUM
    for loss in (_built(), keras([[1.0]], [[1.0]])):
      assert losses.reduction_of(loss) is None
  with losses.losses_scaled(_tripled):  # Eager, under v2 behaviour.
    assert keras([[1.0]], [[3.0]]).shape == []


@pytest.mark.parametrize('enabled', [False, True])
def test_the_loss_of_an_estimator_is_divided_by_the_replicas(enabled):
  strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    _built(_Reduction.MEAN)
    strategy._scale_loss_for_estimator = enabled
    assert losses.strategy_divides_loss() == enabled
    _built(_Reduction.SUM)
    assert not losses.strategy_divides_loss()


def _summaries():
  """The values of the scalar summaries of two replicas."""
  strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default() as graph, strategy.scope():
    value = tf.constant(2.0)
    strategy.run(lambda: tf1.summary.scalar('x', value))
    found = [losses.summarized_value(op) for op in graph.get_operations()]
  assert all(each is None or each is value for each in found)
  return sum(each is value for each in found)


def test_every_replica_makes_them_for_a_while(behavior):
  with losses.summaries_of_all(lambda: True):
    assert _summaries() == 2
  with losses.summaries_of_all(lambda: False):
    assert _summaries() == 1
  assert _summaries() == 1


@pytest.mark.parametrize('make, signs', [
    (lambda a, b: a + b, [1, 1]), (lambda a, b: a - b, [1, -1]),
    (lambda a, b: -a, [-1]), (lambda a, b: tf.add_n([a, b]), [1, 1]),
    (lambda a, b: tf.stack([a, b]), [1, 1]), (lambda a, b: tf.identity(a), [1]),
    (lambda a, b: tf.identity_n([b, a])[1], [1]),
    (lambda a, b: tf.concat([a, b], 0), [1, 1]),
    (lambda a, b: a * b, []), (lambda a, b: tf.sqrt(a), [])])
def test_addends(make, signs):
  with tf.Graph().as_default():
    a, b = (tf1.placeholder(tf.float32, [1]) for _ in range(2))
    found = losses.addends(make(a, b))
    assert [sign for _, sign in found] == signs
    assert [term for term, _ in found] == [a, b][:len(signs)]


def test_factors():
  with tf.Graph().as_default():
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    assert losses.factors(a * b) == (a, b, False)
    assert losses.factors(a / b) == (a, b, True)
    assert losses.factors(a + b) is None


def test_alternatives(behavior):
  with tf.Graph().as_default():
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    assert losses.alternatives(tf.where(a > 0, a, b)) == [a, b]
    chosen = tf.cond(a > 0, lambda: a + 1, lambda: b)
    if chosen.op.type == 'Identity':
      chosen, = chosen.op.inputs
    assert len(losses.alternatives(chosen)) == 2
    assert not losses.alternatives(a + b)
