# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The loss that is minimised decides how shards reduce it, and no other."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import _tf_internals
from tfplugin import estimator
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.shards import shard_loss

tf1 = tf.compat.v1

MEAN, SUM = tf1.losses.Reduction.MEAN, tf1.losses.Reduction.SUM
DEVICES = ['/cpu:0', '/cpu:1']
X = np.float32([1, 3, 2, 4])


def _loss(w, x, reduction=SUM):
  """Its gradient is 10 as a sum, 2.5 as a mean."""
  return tf1.losses.compute_weighted_loss(w * x, reduction=reduction)


def _then(first, last):
  """A loss, and after it the loss of a metric: DeepFM's shape."""

  def make(w, x):
    loss = _loss(w, x, first)
    _loss(w, x, last)
    return loss

  return make


def _one():
  """Returns 1, to which 2^64 ways lead from the first tensor."""
  one = tf.constant(2.0 ** -64)
  for _ in range(64):
    one += one
  return one


# The gradient of one device; MEAN is over the shards.
_LOSSES = {
    'sum': (_loss, 10),
    'sum, then mean': (_then(SUM, MEAN), 10),
    'mean, then sum': (_then(MEAN, SUM), 2.5),
    'times a factor': (lambda w, x: _loss(w, x) * _one(), 10),
    'penalty': (lambda w, x: _loss(w, x) + tf.nn.l2_loss(w), 10 + 1),
    'average': (lambda w, x: tf.nn.compute_average_loss(w * x), 2.5),
    'average, penalty': (lambda w, x: tf1.nn.compute_average_loss(
        w * x) + tf1.nn.scale_regularization_loss(tf.nn.l2_loss(w)), 2.5 + 1),
    'average, own penalty': (lambda w, x: tf.nn.compute_average_loss(
        w * x) + tf.nn.l2_loss(w), 2.5 + 1),
    'both': (lambda w, x: 0.5 * (_loss(w, x) - _loss(w, x, MEAN)) / 2.0,
             0.25 * 7.5),
    'keras': (lambda w, x: tf.keras.losses.MeanAbsoluteError('sum')(
        tf.zeros_like(x)[:, tf.newaxis], (w * x)[:, tf.newaxis]), 10),
    'pairwise': (lambda w, x: tf1.losses.mean_pairwise_squared_error(
        tf.zeros([2, 2]), tf.stack([tf.sqrt(w * x), 0.0 * x], 1)), 10),
    'in a branch': (lambda w, x: tf.cond(
        w > 0, lambda: _loss(w, x), lambda: _loss(2 * w, x)), 10),
    # All shards have it: their mean is it.
    'of all shards': (
        lambda w, x: tfplugin.cross_replica_sum(_loss(w, x)), 10),
    'a function': (lambda w, x: tf.function(_loss)(w, x), 10),
    'of each row': (lambda w, x: tf.reduce_mean(
        _loss(w, x, tf1.losses.Reduction.NONE)), 2.5),
}


def _model_fn(make_loss):

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=1.0, use_resource=True)
    loss = make_loss(w, features)
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def _of_decorator(make_loss):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.create_global_step()
    spec = estimator.cross_shard(_model_fn(make_loss), devices=DEVICES)(
        tf.constant(X), None, 'train')
    session.run(tf1.global_variables_initializer())
    loss = session.run(spec.loss)  # Before w is changed.
    session.run(spec.train_op)
    return loss, session.run(tf1.trainable_variables())[0]


def _of_strategy(make_loss, strategy=None, **kwargs):
  strategy = strategy or cross_shard_strategy.CrossShardStrategy(
      ['CPU:0', 'CPU:1'], **kwargs)
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    tf1.train.create_global_step()

    spec = strategy.extended.call_for_each_replica(
        _model_fn(make_loss), args=(
            strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(X.reshape([2, 2])[
                    context.replica_id_in_sync_group])), None, 'train'))
    # As Estimator reports it.
    loss = tf.add_n(strategy.experimental_local_results(spec.loss))
    train_op = tf.group(strategy.experimental_local_results(spec.train_op))
    session.run(tf1.global_variables_initializer())
    loss = session.run(loss)  # Before w is changed.
    session.run(train_op)
    return loss, session.run(tf1.trainable_variables())[0]


@pytest.mark.parametrize('train', [_of_decorator, _of_strategy])
@pytest.mark.parametrize('name', _LOSSES)
def test_the_loss_that_is_minimised_decides(behavior, name, train):
  make_loss, gradient = _LOSSES[name]
  loss, w = train(make_loss)
  # All but the penalty are linear in w.
  np.testing.assert_allclose(w, 1 - gradient, rtol=1e-6)
  value = gradient - 0.5 if 'penalty' in name else gradient
  np.testing.assert_allclose(loss, value, rtol=1e-6)


@pytest.mark.parametrize('train', [_of_decorator, _of_strategy])
@pytest.mark.parametrize('make_loss, op', [
    (lambda w, x: tf.sqrt(_loss(w, x)), 'Sqrt'),
    (lambda w, x: _loss(w, x) / tf.cast(tf.size(x), tf.float32), 'RealDiv'),
    (lambda w, x: _loss(w, x) / tf.cast(tf.shape(tf1.placeholder_with_default(
        x, [None]))[0], tf.float32), 'RealDiv'),
    (lambda w, x: tf.exp(_loss(w, x)) + tf.nn.l2_loss(w), 'Exp')])
def test_what_is_made_of_a_sum_is_refused(behavior, train, make_loss, op):
  with pytest.raises(ValueError, match=rf'Reduction\.SUM.*by {op}\.'):
    train(make_loss)


@pytest.mark.parametrize('make_loss, count', [
    (lambda w, x: _loss(w, x) / int(x.shape[0]), 2),
    (lambda w, x: _loss(w, x) * (1 / 6), 6),
    (lambda w, x: _loss(w, x) / 3, None)])
def test_a_sum_divided_by_the_rows_of_a_shard_is_told(
    behavior, caplog, make_loss, count):
  _of_decorator(make_loss)
  assert caplog.text.count('and a shard has') == bool(count)
  assert not count or f'Reduction.SUM` by {count}, and' in caplog.text


def test_an_average_of_the_replicas_is_summed_as_it_is():
  average = _LOSSES['average'][0]
  assert _of_strategy(average, reduction=SUM)[1] == 1 - 2.5
  # It is divided by 2, and each group has one shard.
  with pytest.raises(ValueError, match='several groups.*divided by 2'):
    _of_strategy(average, group_assignment=[[0], [1]])


def test_groups_take_their_own_mean():
  """Each of two groups is one shard: the first has the rows 1 and 3."""
  for reduction in (SUM, MEAN):
    loss, w = _of_strategy(lambda w, x: _loss(w, x),
                           group_assignment=[[0], [1]], reduction=reduction)
    assert (loss, w) == (5, 1 - 4)


@pytest.mark.parametrize('form', ['decorator', 'strategy'])
def test_the_wrapper_reduces_as_its_argument_says(form):
  """Whatever the loss: on TPU it knows of no other reduction, either."""

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=1.0, use_resource=True)
    optimizer = tfplugin.CrossShardOptimizer(
        tf1.train.GradientDescentOptimizer(1.0))
    return tf.estimator.EstimatorSpec(mode, loss=w, train_op=optimizer.minimize(
        _loss(w, features)))

  with tf.Graph().as_default(), tf1.Session() as session:
    if form == 'decorator':
      train_op = estimator.cross_shard(model_fn, devices=DEVICES)(
          tf.constant(X), None, 'train').train_op
    else:
      strategy = cross_shard_strategy.CrossShardStrategy(['CPU:0', 'CPU:1'])
      with strategy.scope():
        train_op = strategy.run(lambda: model_fn(
            tf.constant([5.0]), None, 'train').train_op)
      train_op = strategy.experimental_local_results(train_op)
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    # Mean of 1 + 3 and 2 + 4; mean of 5 and 5.
    assert session.run(tf1.trainable_variables())[0] == -4


def _by_row(w, x):
  """Divides each row's loss by the row's count, under TensorFlow's name."""
  loss = 0.0
  for value in tf.unstack(tf.reshape(x, [2, 1])):
    count = tf.reduce_sum(value)
    loss += count * w + tf.math.divide_no_nan(
        tf.reduce_sum(w * value * value), count, name='value')
  return loss / 2.0


@pytest.mark.parametrize('train', [_of_decorator, _of_strategy])
def test_a_division_of_the_program_keeps_its_count(behavior, train):
  # w * x * x / x + w * x for each row; the mean of x is 2.5.
  np.testing.assert_allclose(train(_by_row), [5, 1 - 5], rtol=1e-6)


@pytest.mark.parametrize('reduction, expected', [(SUM, -4 - 4), (MEAN, -2)])
def test_of_a_tf_function_and_of_eager_execution(reduction, expected):
  strategy = cross_shard_strategy.CrossShardStrategy(['CPU:0', 'CPU:1'])
  for compiled in (False, True):
    with strategy.scope():
      w = tf.Variable(1.0)
    optimizer = tf1.train.GradientDescentOptimizer(1.0)

    def step(x, w=w, optimizer=optimizer):
      optimizer.minimize(lambda: _loss(w, x, reduction), var_list=[w])

    def run(x, step=step):
      strategy.run(step, args=(x,))

    # Each of the two shards has the rows 2 and 3, or more: the sum is 10.
    (tf.function(run) if compiled else run)(tf.constant([2.0, 3.0]))
    assert float(w.read_value()) == (1 - 10 if reduction == SUM else 1 - 2.5)


@pytest.mark.parametrize('reduction', [SUM, MEAN])
def test_tensorflow_does_not_divide_as_well(reduction):

  class Strategy(shard_loss.ScalesLoss, tf.distribute.OneDeviceStrategy):
    reduced_together = 1 if reduction == SUM else 4
    group_assignment, num_shards, divided_by_keras = None, 4, 1

  strategy = Strategy('/cpu:0')
  strategy._scale_loss_for_estimator = True
  assert not strategy._scale_loss_for_estimator
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(strategy.part_of_loss(tf.constant(8.0))) == (
        8 if reduction == SUM else 2)


def test_a_mean_of_keras_3_is_refused_where_another_number_divides(
    behavior, monkeypatch):
  # As it is with any Keras: it divides by both shards already.
  monkeypatch.setattr(_tf_internals, 'reduction_of',
                      lambda loss: _tf_internals.MEAN_OF_REPLICAS)

  def part(**kwargs):
    strategy = cross_shard_strategy.CrossShardStrategy(
        ['CPU:0', 'CPU:1'], **kwargs)
    with tf.Graph().as_default(), tf1.Session() as session:
      return session.run(strategy.part_of_loss(tf.constant(8.0)))

  assert part() == part(group_assignment=[[0, 1]]) == 8
  for kwargs in {'reduction': SUM}, {'group_assignment': [[0], [1]]}:
    with pytest.raises(ValueError, match='must not.*divided by 2. Use'):
      part(**kwargs)
