# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of dropping stale gradients: which writes of the step are staleness."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import drop_stale_gradient

tf1 = tf.compat.v1

Optimizer = drop_stale_gradient.DropStaleGradientOptimizer
_LIMIT = 30  # seconds; a wait that lasts longer is a failure


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.5)


def _step_variable(use_resource):
  with tf1.variable_scope('', use_resource=use_resource):
    return tf1.train.get_or_create_global_step()


def _slow_loss(w):
  """A forward pass that takes longer than any write of the step."""
  matrix = tf.random.uniform([100, 100])
  for _ in range(50):
    matrix = tf.matmul(matrix, matrix) * 0.01
  return w * w + 0.0 * tf.reduce_sum(matrix) * w


def _train(train_op, fetches, num_steps):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(num_steps):
      session.run(train_op)
    return session.run(fetches)


_WRITES = {
    'assign': lambda step: tf1.assign(step, step + 1),
    'assign_add': lambda step: tf1.assign_add(step, 1),
    'method': lambda step: step.assign_add(1),
    'in a condition': lambda step: tf.cond(
        tf1.placeholder_with_default(True, []),
        lambda: tf.identity(tf1.assign_add(step, 1)), lambda: tf.constant(
            0, tf.int64)),
}
_RESOURCE_ONLY = ('in a condition',)


@pytest.mark.parametrize('when', ['before', 'after', 'around'])
@pytest.mark.parametrize('write', _WRITES)
@pytest.mark.parametrize('use_resource', [True, False])
def test_a_worker_advances_the_step_by_itself(
    behavior, use_resource, write, when):
  if behavior == 'v2' and not use_resource and write in _RESOURCE_ONLY:
    pytest.skip('TensorFlow refuses to write a ref in a branch of v2.')
  with tf.Graph().as_default():
    step = _step_variable(use_resource)
    w = tf1.get_variable('w', initializer=1024.0)
    loss = _slow_loss(w)
    optimizer = Optimizer(tf1.train.GradientDescentOptimizer(0.25), 0)
    if when == 'after':
      update = optimizer.minimize(loss)
      advance = _WRITES[write](step)
    else:
      advance = _WRITES[write](step)
      with tf.control_dependencies([advance] if when == 'around' else []):
        update = optimizer.minimize(loss)
    # w -= .25 * 2 * w halves it in each step.
    assert _train(tf.group(update, advance),
                  [w, step, optimizer.num_applied], 5) == [32.0, 5, 5]


@pytest.mark.parametrize('is_late', [False, True])
def test_a_forward_pass_in_a_function(behavior, is_late):
  # Its gradient is of a function that writes nothing.
  with tf.Graph().as_default():
    step = _step_variable(use_resource=True)
    v = tf1.get_variable('v', initializer=4.0, use_resource=True)
    others = tf1.assign_add(step, 3)

    def meanwhile(value):
      if is_late:
        session.run(others)
      return value

    def forward():
      held = tf.numpy_function(meanwhile, [v.read_value()], tf.float32)
      return v * tf.stop_gradient(tf.ensure_shape(held, []))

    optimizer = Optimizer(_sgd(), 2)
    update = optimizer.minimize(tf.function(forward)(), step, [v])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run([update, optimizer.staleness])[1] == 3 * is_late
      assert session.run([v, step]) == ([4.0, 3] if is_late else [2.0, 1])


def test_two_instances_do_not_count_each_other(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    updates = []
    for name in 'ab':
      v = tf1.get_variable(name, initializer=1024.0)
      updates.append(Optimizer(
          tf1.train.GradientDescentOptimizer(0.25), 0).minimize(
              _slow_loss(v) if name == 'b' else v * v, step, var_list=[v]))
    assert _train(tf.group(*updates), [*tf1.trainable_variables(), step],
                  5) == [32.0, 32.0, 10]


def test_two_steps_in_one_run(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1024.0, use_resource=True)
    update = tf.no_op()
    for _ in range(2):
      with tf.control_dependencies([update]):
        update = Optimizer(tf1.train.GradientDescentOptimizer(0.25), 0
                           ).minimize(w * w, step)
    assert _train(update, [w, step], 2) == [64.0, 4]


def _in_order(optimizers, losses, variables, step):
  """The gradients first, then the updates one after the other."""
  pairs = [o.compute_gradients(loss(), [v])
           for o, loss, v in zip(optimizers, losses, variables)]
  update = tf.no_op()
  for optimizer, grads_and_vars in zip(optimizers, pairs):
    with tf.control_dependencies([update]):
      update = optimizer.apply_gradients(grads_and_vars, step)
  return update


def _in_turn(optimizers, losses, variables, step):
  """Each gradient after the update before it, as in a GAN."""
  update = tf.no_op()
  for optimizer, loss, v in zip(optimizers, losses, variables):
    with tf.control_dependencies([update]):
      update = optimizer.minimize(loss(), step, var_list=[v])
  return update


def _in_a_branch(*args):
  return tf.cond(tf1.placeholder_with_default(True, []),
                 lambda: tf.group(_in_turn(*args)), tf.no_op)


@pytest.mark.parametrize('others, bound, want', [(0, 0, 32.0), (2, 2, 32.0),
                                                 (2, 1, 1024.0)])
@pytest.mark.parametrize('use_locking', [True, False])
@pytest.mark.parametrize('train', [_in_turn, _in_order, _in_a_branch])
def test_own_updates_on_one_batch_are_not_staleness(
    behavior, train, use_locking, others, bound, want):
  with tf.Graph().as_default():
    step = _step_variable(use_resource=True)
    x = tf1.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensors(1.0).repeat()).get_next()
    variables = [tf1.get_variable(
        name, initializer=1024.0, use_resource=True) for name in 'ab']
    advance = tf1.assign_add(step, others)

    def overtaken(value):
      session.run(advance)
      return value

    def loss():
      return tf.square(x * variables[0].read_value())

    def late_loss():
      value = variables[1].read_value()
      late = tf.numpy_function(overtaken, [value], tf.float32)
      return x * value * value * tf.stop_gradient(
          tf.ensure_shape(late, []) / value)

    update = train(
        [Optimizer(tf1.train.GradientDescentOptimizer(0.25), bound, use_locking)
         for _ in variables], [loss, late_loss], variables, step)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(5):
        session.run(update)
      # The first one may be overtaken too, where the gradients come first.
      assert session.run(variables[1]) == want


@pytest.mark.parametrize('use_resource', [True, False])
def test_a_loop_of_steps(behavior, use_resource):
  if behavior == 'v2' and not use_resource:
    pytest.skip('TensorFlow refuses to write a ref in a loop of v2.')
  with tf.Graph().as_default():
    step = _step_variable(use_resource)
    w = tf1.get_variable('w', initializer=1024.0, use_resource=use_resource)
    optimizer = Optimizer(tf1.train.GradientDescentOptimizer(0.25), 0)

    def body(i):
      # A ref is an alias: read anew in each iteration.
      value = w.read_value()
      update = optimizer.apply_gradients([(2.0 * value, w)], step)
      with tf.control_dependencies([update]):
        return i + 1

    loop = tf.while_loop(lambda i: i < 5, body, [0])
    assert _train(loop, [w, step, optimizer.num_applied], 1) == [32.0, 5, 5]


class _Others:
  """What other workers do while this one is held."""

  def __init__(self):
    self.reached = threading.Event()
    self.open = threading.Event()

  def __call__(self):
    self.reached.set()
    assert self.open.wait(_LIMIT)
    return np.float32(1.0)

  def meanwhile(self, session, train_op, others):
    thread = threading.Thread(target=lambda: session.run(train_op))
    thread.start()
    try:
      assert self.reached.wait(_LIMIT)
      session.run(others)
    finally:
      self.open.set()
      thread.join(_LIMIT)
    assert not thread.is_alive()


def _constant(held):
  with tf.control_dependencies([held]):
    return tf.constant(2.0)


@pytest.mark.parametrize('gradient', [
    lambda held: held, _constant, lambda held: tf.cond(
        held > 0.0, lambda: tf.constant(2.0), lambda: tf.constant(0.0))])
@pytest.mark.parametrize('bound, applied', [(4, 0), (5, 1)])
def test_a_gradient_that_reads_no_variable_is_late(
    behavior, gradient, bound, applied):
  others = _Others()
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    held = tf1.py_func(others, [], tf.float32, stateful=True)
    held.set_shape([])
    optimizer = Optimizer(_sgd(), bound)
    train_op = optimizer.apply_gradients([(gradient(held), w)], step)
    advance = tf1.assign_add(step, 5)
    _, reading = optimizer.staleness.op.inputs
    assert reading.op in held.op.control_inputs
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      others.meanwhile(session, train_op, advance)
      assert session.run([optimizer.num_applied, step]) == [
          applied, 5 + applied]


def test_a_constant_gradient_waits_for_the_reading(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    optimizer = Optimizer(_sgd(), 0)
    (gradient, _), = pairs = optimizer.compute_gradients(0.0 - w)
    optimizer.apply_gradients(pairs, step)
    _, reading = optimizer.staleness.op.inputs
    assert reading.op in gradient.op.control_inputs


def test_what_makes_handles_and_initial_values_does_not_wait(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    scale = tf.sqrt(tf.constant(4.0))
    w = tf1.get_variable('w', initializer=scale)
    Optimizer(_sgd(), 0).minimize(w * scale, step)
    with tf1.Session() as session:
      session.run(w.initializer)  # And the step is not.
      assert session.run(w) == 2.0


def test_threads_have_readings_of_their_own():
  w = tf.Variable(8.0)
  step = tf.Variable(0, dtype=tf.int64)
  optimizer = Optimizer(_sgd(), 0)
  results = {}

  def late():
    # Reads the step; then the other thread makes a step of its own.
    reached.set()
    assert go_on.wait(_LIMIT)
    return w * w / 2

  def train():
    optimizer.minimize(late, step, [w])
    results['late'] = optimizer.num_dropped.numpy()

  reached, go_on = threading.Event(), threading.Event()
  thread = threading.Thread(target=train)
  thread.start()
  assert reached.wait(_LIMIT)
  optimizer.minimize(lambda: w * w / 2, step, [w])
  assert (w.numpy(), step.numpy()) == (4.0, 1)
  go_on.set()
  thread.join(_LIMIT)
  assert results == {'late': 1}
  assert (w.numpy(), step.numpy()) == (4.0, 1)


def test_a_local_init_op_of_the_program_may_be_older(behavior):
  with tf.Graph().as_default():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(['a'], [1.0]), 0.0)
    own = tf1.tables_initializer()
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    optimizer = Optimizer(_sgd(), 2)
    train_op = optimizer.minimize(w * table.lookup(tf.constant('a')), step)
    applied = optimizer.num_applied
    with tf1.train.MonitoredTrainingSession(
        scaffold=tf1.train.Scaffold(local_init_op=own)) as session:
      session.run(train_op)
      assert session.run([w, applied]) == [0.5, 1]
