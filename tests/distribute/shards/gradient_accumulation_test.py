# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients that are summed over steps, in every form of cross shard.

The program is the usual one: it adds each gradient to a variable, and every
second step applies the variable in a branch. It equals numpy on the whole batch
and, as the rows are even, one device.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin.estimator import cross_shard
from tfplugin.estimator import tpu_shards

tf1 = tf.compat.v1
MEAN = tf1.losses.Reduction.MEAN
SUM = tf1.losses.Reduction.SUM
CPUS = ['/cpu:0', '/cpu:1']
EVERY = 2
START = np.array([[0.5], [-0.25]])
X = np.random.RandomState(3).uniform(-2, 2, [4, 4, 2])
Y = X @ [[2.0], [-3.0]] + 1.0


LIMIT = 2.0  # Of the norm: less than each sum of two gradients.


def _expected(scale=1.0, rows=slice(None), momentum=0.5, limit=None):
  """The weight after four steps, in float64."""
  weight, slot, sums = START, 0.0, 0.0
  for step in range(4):
    x, y = X[step][rows], Y[step][rows]
    sums = sums + scale * 2 * x.T @ (x @ weight - y) / len(x)
    if step % EVERY == EVERY - 1:
      gradient = sums / EVERY
      if limit:
        norm = np.linalg.norm(gradient)
        assert norm > limit
        gradient = gradient * limit / norm
      slot = momentum * slot + gradient
      weight, sums = weight - 0.0625 * slot, 0.0
  return weight


def _batches():
  return tf.data.Dataset.from_tensor_slices((np.float32(X), np.float32(Y)))


def _accumulate(gradient, method):
  if isinstance(gradient, tf.IndexedSlices):
    gradient = tf.convert_to_tensor(gradient)
  sums = tf1.get_variable(
      'sums', initializer=tf.zeros([2, 1]), trainable=False)
  if method == 'assign_sub':
    return sums, sums.assign_sub(-gradient)
  if method == 'scatter_add':
    return sums, sums.scatter_add(tf.IndexedSlices(
        gradient, tf.constant([0, 1])))
  return sums, tf1.assign_add(sums, gradient)


def _train_op(features, labels, wrap=lambda optimizer: optimizer,
              method='assign_add', by_hand=False, first=lambda g: g,
              last=lambda g: g):
  weight = tf1.get_variable('weight', initializer=np.float32(START))
  step = tf1.train.get_or_create_global_step()
  loss = tf.reduce_mean(tf.square(features @ weight - labels))
  optimizer = wrap(tf1.train.MomentumOptimizer(0.0625, 0.5))
  gradient = (tf1.gradients(loss, [weight])[0] if by_hand else
              optimizer.compute_gradients(loss, [weight])[0][0])
  sums, added = _accumulate(first(gradient), method)

  def apply():
    update = optimizer.apply_gradients(
        [(last(sums.read_value() / EVERY), weight)])
    with tf.control_dependencies([update]):
      return tf.group(sums.assign(tf.zeros_like(sums)))

  with tf.control_dependencies([added]):
    branch = tf.cond(tf.equal(step % EVERY, EVERY - 1), apply, tf.no_op)
  with tf.control_dependencies([branch]):
    return loss, tf.group(tf1.assign_add(step, 1))


def _model_fn(**options):

  def model_fn(features, labels, mode, params):
    del params
    loss, train_op = _train_op(features, labels, **options)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def _check(decorated, expected):
  values = decorated_models.train(decorated, dataset=_batches)
  np.testing.assert_allclose(values['weight'], expected, rtol=1e-5)
  np.testing.assert_array_equal(values['sums'], np.zeros([2, 1]))
  # The names of one device, slots that are made in the branch included.
  assert sorted(values) == [
      'global_step', 'losses', 'sums', 'weight', 'weight/Momentum']


def test_one_device(behavior):
  _check(_model_fn(), _expected())


@pytest.mark.parametrize('reduction, scale', [(MEAN, 1.0), (SUM, 2.0)])
def test_cross_shard(behavior, reduction, scale):
  _check(cross_shard(_model_fn(), devices=CPUS, reduction=reduction),
         _expected(scale))


def test_gradients_of_tf_gradients_are_summed(behavior):
  _check(cross_shard(_model_fn(by_hand=True), devices=CPUS), _expected(2.0))


@pytest.mark.parametrize('method', ('assign_sub', 'scatter_add'))
def test_other_additions(behavior, method):
  _check(cross_shard(_model_fn(method=method), devices=CPUS), _expected())


def test_groups_follow_the_group_of_the_first_shard(behavior):
  decorated = cross_shard(_model_fn(), devices=CPUS * 2,
                          group_assignment=[[2, 0], [1, 3]])
  _check(decorated, _expected(rows=[0, 2]))


def test_optimizer_by_hand_in_the_shards_of_a_tpu_estimator(behavior):
  model_fn = _model_fn(wrap=tfplugin.CrossShardOptimizer)
  _check(tpu_shards.shard_model_fn(model_fn, 2, CPUS), _expected())


def test_shards_of_a_tpu_estimator_are_averaged(behavior):
  _check(tpu_shards.shard_model_fn(_model_fn(), 2, CPUS), _expected())


def test_towers(behavior):
  _check(tfplugin.replicate_model_fn(_model_fn(), devices=CPUS), _expected())


def _run(strategy, build):
  """Runs `build` on the rows of each replica; returns all variables."""
  with tf.Graph().as_default(), strategy.scope():
    features, labels = tf1.data.make_one_shot_iterator(
        _batches()).get_next()

    def replica():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      return build(tf.reshape(features, [2, 2, 2])[index],
                   tf.reshape(labels, [2, 2, 1])[index])[1]

    train_op = tf.group(strategy.experimental_local_results(
        strategy.run(replica)))
    # Mirrored: by the name of the first, all copies.
    copies = {v.op.name: strategy.experimental_local_results(v)
              for v in tf1.global_variables()}
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(4):
        session.run(train_op)
      return session.run(copies)


@pytest.mark.parametrize('method', ('assign_add', 'assign_sub', 'scatter_add'))
@pytest.mark.parametrize('reduction, scale', [(MEAN, 1.0), (SUM, 2.0)])
def test_strategy(behavior, reduction, scale, method):
  strategy = tfplugin.distribute.CrossShardStrategy(
      ['CPU:0', 'CPU:1'], reduction)
  values = _run(strategy, functools.partial(_train_op, method=method))
  for copy in values['weight']:
    np.testing.assert_allclose(copy, _expected(scale), rtol=1e-5)
  assert sorted(values) == ['global_step', 'sums', 'weight', 'weight/Momentum']


def _clip(gradient):
  return tf.clip_by_norm(gradient, LIMIT)


# The sums of the shards' gradients are accumulated, and applied as they are.
SUMMED = [({}, None), ({'last': _clip}, LIMIT)]


def _told(caplog):
  return [r.getMessage() for r in caplog.records
          if 'changes its own gradients' in r.getMessage()]


@pytest.mark.parametrize('method', ('assign_add', 'scatter_add'))
@pytest.mark.parametrize('options, limit', SUMMED)
def test_sums_by_hand_under_the_strategy(
    behavior, caplog, options, limit, method):
  strategy = tfplugin.distribute.CrossShardStrategy(['CPU:0', 'CPU:1'])
  values = _run(strategy, functools.partial(
      _train_op, method=method, first=tfplugin.cross_replica_sum, **options))
  for copy in values['weight']:
    np.testing.assert_allclose(copy, _expected(limit=limit), rtol=1e-5)
  assert not _told(caplog)


@pytest.mark.parametrize('options, limit', SUMMED)
def test_sums_by_hand_with_the_decorator(behavior, caplog, options, limit):
  # On one device without a strategy the sum is the gradient itself.
  _check(cross_shard(_model_fn(
      first=tfplugin.cross_replica_sum, **options), devices=CPUS),
         _expected(limit=limit))
  assert not _told(caplog)


def test_a_clip_of_what_a_shard_accumulated_is_told(behavior, caplog):
  strategy = tfplugin.distribute.CrossShardStrategy(['CPU:0', 'CPU:1'])
  _run(strategy, functools.partial(_train_op, last=_clip))
  assert len(_told(caplog)) == 1


def test_optimizer_by_hand_under_the_strategy(behavior):
  strategy = tfplugin.distribute.CrossShardStrategy(['CPU:0', 'CPU:1'])
  values = _run(strategy, functools.partial(
      _train_op, wrap=lambda opt: tfplugin.CrossShardOptimizer(opt, SUM)))
  for copy in values['weight']:
    np.testing.assert_allclose(copy, _expected(2.0), rtol=1e-5)


def test_groups_of_the_strategy_are_refused_in_a_branch(behavior):
  strategy = tfplugin.distribute.CrossShardStrategy(
      ['CPU:0', 'CPU:1'], group_assignment=[[0], [1]])
  with pytest.raises(NotImplementedError, match='several groups'):
    _run(strategy, _train_op)
