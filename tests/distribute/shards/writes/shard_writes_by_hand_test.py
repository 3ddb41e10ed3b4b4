# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of trained variables by hand, with gradients that a shard took.

The loss is w * x for the rows 1, 2, 3 and 6. So the gradient of its mean over
the batch is 3, and the gradient of its sum is 12.
"""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.estimator import cross_shard

tf1 = tf.compat.v1
CPUS = ['/cpu:0', '/cpu:1']
ROWS = np.array([1.0, 2.0, 3.0, 6.0], np.float32)
MEAN = tf1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
SUM = tf1.losses.Reduction.SUM


def _loss(w, x, reduction):
  return tf1.losses.compute_weighted_loss(w * x, reduction=reduction)


def _taken(loss, w, by_optimizer):
  if not by_optimizer:
    return tf1.gradients(loss, [w])[0]
  return tf1.train.GradientDescentOptimizer(1.0).compute_gradients(
      loss, [w])[0][0]


def _update_of_other(x):
  """Returns the update of another variable: the decorator needs one."""
  other = tf1.get_variable('other', initializer=1.0)
  return tf1.train.GradientDescentOptimizer(0.1).minimize(
      tf.reduce_mean(other * x), tf1.train.get_or_create_global_step(),
      var_list=[other])


def _model_fn(write, reduction=MEAN, by_optimizer=True):
  def model_fn(features, labels, mode, params):
    del labels, params
    w = tf1.get_variable('w', initializer=20.0)
    loss = _loss(w, features, reduction)
    written = write(w, _taken(loss, w, by_optimizer))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(
        written, _update_of_other(features)))
  return model_fn


def _with_decorator(model_fn, **kwargs):
  decorated = cross_shard(model_fn, devices=CPUS, **kwargs)
  return decorated_models.train(decorated, 1, (
      lambda: tf.data.Dataset.from_tensors((ROWS, ROWS))))


def _with_strategy(model_fn, **kwargs):
  """Returns the variables of the first replica after a step."""
  strategy = cross_shard_strategy.CrossShardStrategy(
      ['CPU:0', 'CPU:1'], **kwargs)
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      rows = tf.reshape(tf.constant(ROWS), [2, 2])[index]
      return model_fn(rows, None, 'train', None).train_op

    done = strategy.run(replica)
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(done))
    copies = session.run([strategy.experimental_local_results(v)
                          for v in tf1.trainable_variables()])
    assert all(len(set(values)) == 1 for values in copies)
    return {v.op.name: values[0]
            for v, values in zip(tf1.trainable_variables(), copies)}


FORMS = pytest.mark.parametrize('train', (_with_decorator, _with_strategy))


def _step(w, gradient):
  return w.assign_sub(0.5 * gradient)


@FORMS
@pytest.mark.parametrize('by_optimizer', (True, False))
@pytest.mark.parametrize('reduction, gradient', [(MEAN, 3.0), (SUM, 12.0)])
def test_a_step_is_the_one_of_one_device(
    behavior, train, by_optimizer, reduction, gradient):
  values = train(_model_fn(_step, reduction, by_optimizer))
  assert values['w'] == pytest.approx(20.0 - 0.5 * gradient)


@FORMS
@pytest.mark.parametrize('by_optimizer', (True, False))
def test_a_step_of_summed_losses(behavior, train, by_optimizer):
  # The means of the shards are 1.5 and 4.5: SUM minimises their sum.
  values = train(_model_fn(_step, MEAN, by_optimizer), reduction=SUM)
  assert values['w'] == pytest.approx(20.0 - 0.5 * 6.0)


@FORMS
def test_a_step_by_accumulated_gradients(behavior, train):
  def write(w, gradient):
    sums = tf1.get_variable('sums', initializer=0.0, trainable=False)
    with tf.control_dependencies([sums.assign_add(gradient)]):
      return w.assign_sub(0.5 * sums.read_value())
  assert train(_model_fn(write))['w'] == pytest.approx(20.0 - 0.5 * 3.0)


@FORMS
def test_a_step_by_sums_over_shards(behavior, train):
  def write(w, gradient):
    return w.assign_sub(tf.clip_by_norm(
        tfplugin.cross_replica_sum(gradient), 2.0))
  assert train(_model_fn(write))['w'] == pytest.approx(20.0 - 2.0)


@FORMS
def test_a_clip_of_one_shards_gradient_is_averaged(behavior, train, caplog):
  def write(w, gradient):
    return w.assign_sub(tf.clip_by_norm(gradient, 0.01))
  assert train(_model_fn(write))['w'] == pytest.approx(20.0 - 0.01)
  assert "the mean of the shards' own values, made of gradients by" in (
      caplog.text)
  assert caplog.text.count('sum them first') == 1


@FORMS
def test_a_sum_of_norms_is_averaged(behavior, train, caplog):
  def write(w, gradient):
    del w
    norms = tf1.get_variable('norms', initializer=0.0, trainable=False)
    return norms.assign_add(tf.norm(gradient))
  train(_model_fn(write))
  assert 'made of gradients by Sqrt' in caplog.text


@FORMS
@pytest.mark.parametrize('reduction, gradient', [(MEAN, 3.0), (SUM, 12.0)])
def test_a_decay_beside_summed_gradients_is_a_write_of_its_own(
    behavior, train, reduction, gradient):
  def together(w, gradient):
    return w.assign_sub(0.5 * (gradient + 0.1 * w))

  def apart(w, gradient):
    decay = 0.05 * w
    with tf.control_dependencies([decay, gradient]):
      update = w.assign_sub(0.5 * gradient)
    with tf.control_dependencies([update]):
      return w.assign_sub(tf.identity(decay))

  with pytest.raises(ValueError, match='which are summed over.*of its own'):
    train(_model_fn(together, reduction))
  assert train(_model_fn(apart, reduction))['w'] == pytest.approx(
      20.0 - 0.5 * gradient - 0.5 * 0.1 * 20.0)


@FORMS
def test_zeros_beside_gradients_are_no_other_term(behavior, train):
  def write(w, gradient):
    return w.assign_sub(0.5 * tf.concat([[gradient], [0.0]], 0)[0])
  assert train(_model_fn(write))['w'] == pytest.approx(20.0 - 0.5 * 3.0)


def test_raw_gradients_of_sums_and_means_are_refused(behavior):
  def model_fn(features, labels, mode, params):
    del labels, params
    w = tf1.get_variable('w', initializer=20.0)
    loss = _loss(w, features, MEAN) + _loss(w, features, SUM)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(
        _step(w, _taken(loss, w, False))))

  with pytest.raises(ValueError, match='some terms are sums.*compute_grad'):
    _with_strategy(model_fn)


def test_linear_ops_of_gradients_are_averaged(behavior):
  def write(w, gradient):
    del w
    pairs = tf.reshape(tf.stack([gradient, 2.0 * gradient]), [1, 2])
    kept = tf1.get_variable('kept', initializer=tf.zeros([2]), trainable=False)
    return kept.assign_add(tf.reduce_mean(tf.transpose(pairs), 1)[::-1])
  # The sum of both shards' parts of the gradient is 3.
  np.testing.assert_allclose(
      _with_decorator(_model_fn(write))['kept'], [3.0, 1.5])


def _train_from_outside(update):
  """Returns a variable, made before the shards, after a step."""
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.create_global_step()
    outside = tf1.get_variable('outside', initializer=20.0)

    def model_fn(features, labels, mode):
      del labels
      loss = _loss(outside, features, MEAN)
      updated = update(outside, _taken(loss, outside, True))
      return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(
          updated, _update_of_other(features)))

    spec = cross_shard(model_fn, devices=CPUS)(
        tf.constant(ROWS), None, 'train')
    session.run(tf1.global_variables_initializer())
    session.run(spec.train_op)
    return session.run(outside)


def test_a_step_of_a_variable_from_outside(behavior, caplog):
  assert _train_from_outside(lambda v, g: tf1.assign_sub(
      v, 0.5 * g)) == pytest.approx(20.0 - 0.5 * 3.0)
  _train_from_outside(lambda v, g: tf1.assign_add(v, tf.square(g)))
  assert 'made of gradients by Square' in caplog.text
