# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of dropping stale gradients: checkpoints, eager execution, replicas."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import cross_shard
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

Optimizer = drop_stale_gradient.DropStaleGradientOptimizer


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.5)


def _adam():
  return tf1.train.AdamOptimizer(0.1)


def test_checkpoint_moves_between_bare_and_wrapped(behavior, tmp_path):
  def build(wrap):
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    train_op = wrap(_adam()).minimize(w * w, global_step=step)
    return w, train_op

  bare, wrapped = (lambda o: o), (lambda o: Optimizer(o, 0))
  for first, second in ((bare, wrapped), (wrapped, bare)):
    results = []
    for third in (first, second):
      with tf.Graph().as_default():
        w, train_op = build(first)
        with tf1.Session() as session:
          session.run(tf1.global_variables_initializer())
          session.run(train_op)
          path = tf1.train.Saver().save(session, str(tmp_path / 'model'))
      with tf.Graph().as_default():
        w, train_op = build(third)
        saved = {n for n, _ in tf.train.list_variables(path)}
        shared = [v for v in tf1.global_variables() if v.op.name in saved]
        assert {'w', 'w/Adam', 'beta1_power'} <= {v.op.name for v in shared}
        with tf1.Session() as session:
          session.run(tf1.global_variables_initializer())
          tf1.train.Saver(shared).restore(session, path)
          session.run(train_op)
          results.append(session.run(w))
    assert results[0] == results[1]


def test_restored_session_without_initialisers_trains(behavior, tmp_path):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    optimizer = Optimizer(_sgd(), 0)
    train_op = optimizer.minimize(
        w * w, global_step=tf1.train.get_or_create_global_step())
    saver = tf1.train.Saver()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      path = saver.save(session, str(tmp_path / 'model'))
    with tf1.Session() as session:
      saver.restore(session, path)
      session.run(train_op)
      assert session.run([w, optimizer.num_applied]) == [0.0, 1]


def test_eager_and_function_minimize():
  for wrap in (lambda f: f, tf.function):
    w = tf.Variable(1.0)
    step = tf.Variable(0, dtype=tf.int64)
    optimizer = Optimizer(_sgd(), 0)

    @wrap
    def train(w=w, step=step, optimizer=optimizer):
      optimizer.minimize(lambda: w * w, global_step=step, var_list=[w])

    train()
    train()
    assert (float(w), int(step)) == (0.0, 2)
    assert int(optimizer.num_applied) == 2


def test_eager_drops_what_is_late():
  w = tf.Variable(1.0)
  step = tf.Variable(0, dtype=tf.int64)
  optimizer = Optimizer(_sgd(), 4)

  def loss():
    value = w * w
    step.assign_add(5)  # Another thread's updates.
    return value

  optimizer.minimize(loss, global_step=step, var_list=[w])
  assert (float(w), int(step)) == (1.0, 5)
  assert not bool(optimizer.accepted)
  assert float(optimizer.stale_counter) == 1.0


@pytest.mark.parametrize('wrap', [
    lambda opt: variable_clipping.VariableClippingOptimizer(opt, {'v': 0}, 9.0),
    lambda opt: cross_shard.CrossShardOptimizer(
        variable_clipping.VariableClippingOptimizer(opt, {'v': 0}, 9.0))])
def test_eager_inside_of_another_wrapper_finds_the_step(wrap):
  v = tf.Variable([8.0], name='v')
  step = tf.Variable(0, dtype=tf.int64)
  inner = Optimizer(_sgd(), 1)
  late = [0, 1, 2]

  def loss():
    step.assign_add(late.pop())
    return tf.reduce_sum(v * v) / 4

  optimizer = wrap(inner)
  for weight, count, staleness in ((8.0, 2, 2), (6.0, 4, 1), (4.5, 5, 0)):
    optimizer.minimize(loss, step, [v])
    assert (v.numpy()[0], step.numpy(), inner.staleness.numpy()) == (
        weight, count, staleness)


def test_an_object_based_checkpoint_holds_the_optimizer_inside(tmp_path):
  def build(value):
    v, inner = tf.Variable([value]), _adam()
    step = tf.Variable(0, dtype=tf.int64)
    optimizer = Optimizer(inner, 1)
    return v, tf.train.Checkpoint(opt=inner, v=v, step=step), (
        lambda: optimizer.minimize(
            lambda: tf.reduce_sum(v * v * v), step, [v]))

  v, checkpoint, train = build(6.0)
  other, other_checkpoint, other_train = build(0.0)
  train()
  train()
  other_checkpoint.restore(checkpoint.save(str(tmp_path / 'c')))
  train()
  other_train()
  assert v.numpy() == other.numpy() != 6.0


def test_eager_apply_without_a_reading_names_the_call():
  w = tf.Variable(1.0)
  with pytest.raises(RuntimeError, match=r'minimize\(loss, global_step\)'):
    Optimizer(_sgd(), 0).apply_gradients(
        [(tf.ones([]), w)], tf.Variable(0, dtype=tf.int64))


def test_eager_apply_does_not_go_by_the_reading_of_an_earlier_step():
  w = tf.Variable(1.0)
  step = tf.Variable(0, dtype=tf.int64)
  optimizer = Optimizer(_sgd(), 0)
  optimizer.minimize(lambda: w * w, step, [w])
  with pytest.raises(RuntimeError, match='no reading of the step'):
    optimizer.apply_gradients([(tf.ones([]), w)], step)


def test_replicas_of_a_strategy_apply(behavior):
  with tf.Graph().as_default():
    strategy = tf.distribute.MirroredStrategy(
        ['/cpu:0', '/cpu:1'],
        cross_device_ops=tf.distribute.ReductionToOneDevice())
    with strategy.scope():
      step = tf1.train.get_or_create_global_step()
      w = tf1.get_variable('w', initializer=1.0)
      optimizer = Optimizer(_adam(), 0)

      def replica_step():
        return optimizer.minimize(w * w, global_step=step)

      train_op = strategy.group(
          strategy.extended.call_for_each_replica(replica_step))
      init = tf1.global_variables_initializer()
    config = tf1.ConfigProto(device_count={'CPU': 2})
    with tf1.Session(config=config) as session:
      session.run(init)
      session.run(train_op)
      got = session.run(strategy.experimental_local_results(w))
      # Adam's first step has the length of the learning rate.
      np.testing.assert_allclose(got, [0.9, 0.9], rtol=1e-5)


@pytest.mark.parametrize('late', [(0, 5), (5, 0), (5, 5)])
def test_a_drop_is_counted_whichever_replica_is_late(late):
  strategy = tf.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'],
      cross_device_ops=tf.distribute.ReductionToOneDevice())
  with tf.Graph().as_default(), strategy.scope():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0, use_resource=True)
    optimizer = Optimizer(_sgd(), 2)

    def replica_step():
      read = w.read_value()
      replica = tf.get_static_value(
          tf.distribute.get_replica_context().replica_id_in_sync_group)
      copy = strategy.experimental_local_results(step)[replica]
      with tf1.control_dependencies([read]):
        others = copy.assign_add(late[replica], read_value=False)
      with tf1.control_dependencies([others]):
        gradient = 1.0 + 0.0 * read
      return optimizer.apply_gradients([(gradient, w)], global_step=step)

    train_op = strategy.group(strategy.run(replica_step))
    counts = [optimizer.num_dropped, optimizer.num_applied,
              optimizer.stale_counter.read_value()]
    config = tf1.ConfigProto(device_count={'CPU': 2})
    with tf1.Session(config=config) as session:
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      session.run(train_op)
      assert session.run(counts) == [1, 0, 1.0]
      assert session.run(w.read_value()) == 1.0


def _both_ways(optimizer, w):
  clip = variable_clipping.VariableClippingOptimizer
  return {'clip inside': Optimizer(clip(optimizer, [(w, 1)], 2.0), 0),
          'clip outside': clip(Optimizer(optimizer, 0), [(w, 1)], 2.0)}


@pytest.mark.parametrize('order', ['clip inside', 'clip outside'])
def test_nests_with_clipping(behavior, order):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=[[6.0, 8.0], [3.0, 4.0]])
    step = tf1.train.get_or_create_global_step()
    optimizer = _both_ways(_adam(), w)[order]
    train_op = optimizer.minimize(
        0.0 * tf.reduce_sum(tf.gather(w, [0, 0])), global_step=step)
    assert {v.op.name for v in tf1.global_variables()} == {
        'w', 'w/Adam', 'w/Adam_1', 'beta1_power', 'beta2_power', 'global_step',
        'stale_counter'}
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      session.run(train_op)
      np.testing.assert_allclose(
          session.run(w), [[1.2, 1.6], [3.0, 4.0]], rtol=1e-6)
      assert session.run(step) == 2


class _HalfStep(tf1.train.Optimizer):
  """A user's own optimizer that overrides `apply_gradients` alone."""

  def __init__(self):
    super().__init__(False, 'HalfStep')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = [v.assign_sub(0.5 * g) for g, v in grads_and_vars]
    return tf.group(*updates, tf1.assign_add(global_step, 1), name=name)


def test_wraps_an_optimizer_that_overrides_apply_gradients(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    gradients = tf.gradients(w * w, [w])
    train_op = Optimizer(_HalfStep(), 0).apply_gradients(
        list(zip(gradients, [w])), global_step=step)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      assert session.run([w, step]) == [0.0, 1]


class _Summarizing(tf1.train.GradientDescentOptimizer):
  """Optimizer that writes a summary when it applies, as public ones do."""

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    pairs = list(grads_and_vars)
    tf1.summary.scalar('norm', tf.linalg.global_norm([g for g, _ in pairs]))
    return super().apply_gradients(pairs, *args, **kwargs)


def test_a_summary_of_the_optimizer_inside_is_empty_in_a_dropped_step(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    late = tf1.placeholder(tf.int64, [])
    value = 3.0 * w
    with tf.control_dependencies([value]):
      others = tf1.assign_add(step, late)
    with tf.control_dependencies([others]):
      gradient = tf.identity(value)
    optimizer = Optimizer(_Summarizing(0.0), 0)
    update = optimizer.apply_gradients([(gradient, w)], step)
    merged = tf1.summary.merge_all()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      norms = []
      for number in (0, 1):
        _, summary = session.run([update, merged], {late: number})
        norms.append([value.simple_value
                      for value in tf1.Summary.FromString(summary).value
                      if value.tag.endswith('norm')])
    assert norms == [[3.0], []]


def test_partitioned_and_half_precision_variables(behavior):
  with tf.Graph().as_default():
    table = tf1.get_variable(
        'table', [4, 2], tf.float16, tf1.ones_initializer(),
        partitioner=tf1.fixed_size_partitioner(2))
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [0, 3, 3]))
    train_op = Optimizer(_sgd(), 0).minimize(
        loss, global_step=tf1.train.get_or_create_global_step())
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      got = np.concatenate(session.run(list(table)))
  # Partitioned "mod" or "div", rows 0 and 3 are first and last of all parts.
  assert sorted(got[:, 0].tolist()) == [0.0, 0.5, 1.0, 1.0]
