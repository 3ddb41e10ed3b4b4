# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of gradients that shards have summed before they apply them."""

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.shards import four_shards
from tfplugin import estimator
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.shards import current_shards
from tfplugin.estimator import tpu_shards
from tfplugin.optimizers import cross_shard
from tfplugin.testing import one_device

tf1 = tf.compat.v1
CrossShardStrategy = cross_shard_strategy.CrossShardStrategy


@pytest.mark.parametrize('groups, sums', [
    (None, [15] * 4), ([[0, 1], [2, 3]], [3, 3, 12, 12])])
@pytest.mark.parametrize('change, changed', [
    (lambda g: g, lambda x: x), (lambda g: 0.5 * g, lambda x: 0.5 * x),
    (lambda g: tf.clip_by_norm(g, 1.0), np.ones_like)])
def test_gradients_that_are_summed_by_hand_are_summed_once(
    behavior, groups, sums, change, changed):
  def make_train_op(weight, x):
    other = tf1.get_variable('other', initializer=0.0, use_resource=True)
    gradient, of_other = tf.gradients(weight * x + other * x, [weight, other])
    total = change(current_shards.cross_replica_sum(gradient, groups))
    # The strategy sums that of `other`.
    with tf.control_dependencies([
        tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
            [(total, weight), (of_other, other)])]):
      return tf.identity(other.read_value())

  sums = np.float32(sums)
  strategy = CrossShardStrategy(four_shards.CPUS, group_assignment=groups)
  np.testing.assert_allclose(
      four_shards.train(strategy, make_train_op), 100 - changed(sums))


def test_rows_of_gradients_that_are_summed_by_hand_are_summed_once(behavior):
  strategy = CrossShardStrategy(four_shards.CPUS[:2])
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    def shard():
      table = tf1.get_variable('table', initializer=[[0.0]] * 3,
                               use_resource=True)
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      [rows] = tf.gradients(
          tf.reduce_sum(tf.nn.embedding_lookup(table, [index, 2])), [table])
      return tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
          [(current_shards.cross_replica_sum(rows), table)]), table

    train_op, table = strategy.run(shard)
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(train_op))
    for copy_of in session.run(list(
        strategy.experimental_local_results(table))):
      np.testing.assert_array_equal(copy_of, [[-1.0], [-1.0], [-2.0]])


def test_sums_by_hand_in_a_function_are_summed_once():
  strategy = CrossShardStrategy(four_shards.CPUS)
  with strategy.scope():
    weight = tf.Variable(100.0)
  sgd = tf1.train.GradientDescentOptimizer(1.0)

  @tf.function
  def step():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      with tf.GradientTape() as tape:
        loss = weight * tf.gather(tf.constant(four_shards.GRADIENTS), index)
      gradient = current_shards.cross_replica_sum(tape.gradient(loss, weight))
      sgd.apply_gradients([(gradient, weight)])
    strategy.run(shard)

  step()
  assert weight.numpy() == 85.0


def test_the_wrapper_sums_again_what_was_summed_by_hand(behavior):
  """As on TPU, where the wrapper sums whatever it gets."""
  def make_train_op(weight, x):
    [gradient] = tf.gradients(weight * x, [weight])
    return cross_shard.CrossShardOptimizer(
        tf1.train.GradientDescentOptimizer(1.0)).apply_gradients(
            [(current_shards.cross_replica_sum(gradient), weight)])
  weights = four_shards.train(
      CrossShardStrategy(four_shards.CPUS), make_train_op)
  np.testing.assert_array_equal(weights, [40] * 4)


def test_an_optimizer_after_the_wrapper_does_not_sum_again(behavior):
  """The wrapper's rule ends with its call, in each replica."""
  def make_train_op(weight, x):
    other = tf1.get_variable('other', initializer=0.0, use_resource=True)
    gradient, of_other = tf.gradients(weight * x + other * x, [weight, other])
    sgd = tf1.train.GradientDescentOptimizer(1.0)
    with tf.control_dependencies([
        cross_shard.CrossShardOptimizer(sgd).apply_gradients(
            [(of_other, other)])]):
      return sgd.apply_gradients(
          [(current_shards.cross_replica_sum(gradient), weight)])

  weights = four_shards.train(
      CrossShardStrategy(four_shards.CPUS), make_train_op)
  np.testing.assert_array_equal(weights, [85] * 4)


def test_an_optimizer_after_the_wrapper_sums_over_the_shards_of_a_tpu(behavior):
  def model_fn(features, labels, mode):
    del labels
    train_ops, sgd = [], tf1.train.GradientDescentOptimizer(1.0)
    for name, optimizer in (
        ('wrapped', cross_shard.CrossShardOptimizer(sgd)), ('plain', sgd)):
      v = tf1.get_variable(name, initializer=100.0, use_resource=True)
      [gradient] = tf.gradients(v * tf.reduce_sum(features), [v])
      train_ops.append(optimizer.apply_gradients([(gradient, v)]))
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.reduce_sum(features), train_op=tf.group(*train_ops))

  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.get_or_create_global_step()
    spec = _by_tpu(model_fn)(tf.constant([[1.0], [2.0]]), None, 'train')
    session.run(tf1.global_variables_initializer())
    session.run(spec.train_op)
    wrapped, plain = session.run(tf1.trainable_variables())
  assert wrapped == 97.0  # 1 + 2 from the rows of both shards.
  assert plain == 98.5  # Their mean.


def _by_tpu(model_fn):
  def with_params(features, labels, mode, params):
    del params
    return model_fn(features, labels, mode)

  sharded = tpu_shards.shard_model_fn(with_params, 2, CPUS)
  return lambda features, labels, mode: sharded(
      features, labels, mode, params={})


def _model_fn(change, sums_first):
  """A regression whose gradients are changed before they are applied."""
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[1.0], [2.0]], use_resource=True)
    loss = tf.reduce_mean(tf.square(features @ w - labels))
    plain = tf1.train.GradientDescentOptimizer(0.5)
    gradient, = (g for g, _ in cross_shard.CrossShardOptimizer(
        plain).compute_gradients(loss, [w]))
    if sums_first:
      gradient = current_shards.cross_replica_sum(gradient)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=plain.apply_gradients(
            [(change(gradient, w), w)], tf1.train.get_global_step()))
  return model_fn


def _input_fn():
  return tf.data.Dataset.from_tensors((
      np.float32([[1, 2], [3, -4], [-5, 6], [7, 8]]),
      np.float32([[1], [0], [2], [3]]))).repeat()


CPUS = ['/cpu:0', '/cpu:1']
FORMS = {
    'cross_shard': lambda fn: estimator.cross_shard(fn, devices=CPUS),
    'ShardedTPUEstimator': _by_tpu,
}
CHANGES = {
    'by_norm': lambda g, w: tf.clip_by_norm(g, 1.0),
    'by_global_norm': lambda g, w: tf.clip_by_global_norm([g], 1.0)[0][0],
    'by_value': lambda g, w: tf.clip_by_value(g, -0.5, 0.5),
    'finite': lambda g, w: tf.where(tf.math.is_finite(g), g, 0.0),
    'squared': lambda g, w: g * tf.reduce_sum(tf.abs(g)),
}


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('change', CHANGES)
def test_a_change_of_one_shards_gradients_is_told_once(
    behavior, caplog, form, change):
  _build(FORMS[form](_model_fn(CHANGES[change], False)))
  told, = _told(caplog)
  assert 'cross_replica_sum(gradient)` first' in told
  caplog.clear()
  # What it recommends has the numbers of one device.
  one_device.assert_equals_one_device(
      _model_fn(CHANGES[change], True), _input_fn, decorator=FORMS[form],
      modes=['train'])
  assert not _told(caplog)


@pytest.mark.parametrize('change', (
    lambda g, w: g, lambda g, w: -0.5 * g + 0.1 * w,
    lambda g, w: tf.add_n([g, g / 3.0]) * tf.norm(w),
    lambda g, w: tf.reshape(tf.identity(g), [2, 1]) - tf.sign(w)))
def test_multiples_and_sums_of_gradients_are_not_told(caplog, change):
  _build(FORMS['cross_shard'](_model_fn(change, False)))
  assert not _told(caplog)


def test_the_strategy_tells_a_change_of_one_shards_gradients(behavior, caplog):
  def make_train_op(weight, x):
    gradient, = tf.gradients(weight * x, [weight])
    return tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
        [(tf.clip_by_norm(gradient, 1.0), weight)])

  four_shards.train(CrossShardStrategy(four_shards.CPUS), make_train_op)
  assert len(_told(caplog)) == 1


def _build(model_fn):
  with tf.Graph().as_default():
    tf1.train.get_or_create_global_step()
    model_fn(*tf1.data.make_one_shot_iterator(_input_fn()).get_next(), 'train')


def _told(caplog):
  return [r.getMessage() for r in caplog.records
          if 'changes its own gradients' in r.getMessage()]


@pytest.mark.parametrize('factor', (1.0, 0.5))
def test_sums_by_hand_that_a_branch_applies_are_summed_once(behavior, factor):
  """In control flow v2 the branch has placeholders for the sums."""
  def make_train_op(weight, x):
    gradient, = tf.gradients(weight * x, [weight])
    total = current_shards.cross_replica_sum(gradient)
    sgd = tf1.train.GradientDescentOptimizer(1.0)
    return tf.cond(tf.math.is_finite(total), lambda: tf.group(
        sgd.apply_gradients([(total * factor, weight)])), tf.no_op)

  weights = four_shards.train(
      CrossShardStrategy(four_shards.CPUS), make_train_op)
  np.testing.assert_array_equal(weights, [100 - 15 * factor] * 4)


@pytest.mark.parametrize('form', ('cross_shard', 'ShardedTPUEstimator'))
def test_shards_apply_sums_by_hand_in_a_branch_as_one_device(behavior, form):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[1.0], [2.0]], use_resource=True)
    loss = tf.reduce_mean(tf.square(features @ w - labels))
    plain = tf1.train.GradientDescentOptimizer(0.5)
    (gradient, _), = cross_shard.CrossShardOptimizer(
        plain).compute_gradients(loss, [w])
    total = current_shards.cross_replica_sum(gradient)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.cond(
        tf.reduce_all(tf.math.is_finite(total)), lambda: tf.group(
            plain.apply_gradients([(tf.clip_by_norm(total, 1.0), w)],
                                  tf1.train.get_global_step())), tf.no_op))

  one_device.assert_equals_one_device(
      model_fn, _input_fn, decorator=FORMS[form], modes=['train'])


class _Gradients(tf.estimator.SessionRunHook):
  """Hook that takes the gradients of the loss by the trained variables."""

  def begin(self):
    loss = tf1.get_default_graph().get_tensor_by_name('loss:0')
    self._gradients = tf.gradients(
        loss, [*tf1.trainable_variables(), tf.constant(1.0)])

  def before_run(self, run_context):
    return tf.estimator.SessionRunArgs(self._gradients[:-1])

  def after_run(self, run_context, run_values):
    self.found = [
        np.sum(g.values) if hasattr(g, 'values') else g.item()
        for g in run_values.results]


@pytest.mark.parametrize('form', ('one', 'strategy', 'decorator'))
def test_a_hook_takes_gradients_by_variables_of_all_shards(
    behavior, form, tmp_path):
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.5)
    table = tf1.get_variable('table', initializer=[[1.0], [2.0]])
    rows = tf.gather(table, [0, 1])
    loss = tf.reduce_mean(tf.square(w * features)) + tf.reduce_sum(rows) * w
    loss = tf.identity(loss, name='loss')
    train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(
        loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  def input_fn():
    x = np.float32([[1.0], [2.0], [3.0], [4.0]])
    return tf1.data.Dataset.from_tensor_slices((x, x)).batch(
        2 if form == 'strategy' else 4, drop_remainder=True).repeat()

  cpus, strategy, hook = four_shards.CPUS[:2], None, _Gradients()
  if form == 'strategy':
    strategy = CrossShardStrategy(cpus)
  elif form == 'decorator':
    model_fn = estimator.cross_shard(model_fn, devices=cpus)
  tf.estimator.Estimator(
      model_fn, str(tmp_path),
      tf.estimator.RunConfig(train_distribute=strategy)).train(
          input_fn, steps=1, hooks=[hook])
  # The mean of 2 * .5 * x ** 2, and the sum of the table; 2 rows times .5.
  np.testing.assert_allclose(hook.found, [7.5 + 3.0, 1.0])
