# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of dropping stale gradients."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import drop_stale_gradient

tf1 = tf.compat.v1

Optimizer = drop_stale_gradient.DropStaleGradientOptimizer
_LIMIT = 30  # seconds; a wait that lasts longer is a failure


def _sgd(rate=0.5):
  return tf1.train.GradientDescentOptimizer(rate)


def _adam():
  return tf1.train.AdamOptimizer(0.1)


class _Gate:
  """Holds a step between its begin and the forward pass, or after it."""

  def __init__(self):
    self.reached = threading.Event()
    self.open = threading.Event()

  def __call__(self, value):
    self.reached.set()
    assert self.open.wait(_LIMIT)
    return value


def _run_held(session, fetches, gate, meanwhile):
  """Runs a step up to the gate, then `meanwhile`, then the rest of the step."""
  result = []
  thread = threading.Thread(target=lambda: result.append(session.run(fetches)))
  thread.start()
  try:
    assert gate.reached.wait(_LIMIT)
    meanwhile()
  finally:
    gate.open.set()
    thread.join(_LIMIT)
  assert result, 'the held step did not end'
  return result[0]


def _pause(gate, value):
  held = tf1.py_func(gate, [value], tf.float32, stateful=True)
  held.set_shape([])
  return held


def _held_model(gate):
  """Loss w * w whose forward pass, after the read of `w`, stops at the gate."""
  w = tf1.get_variable('w', initializer=1.0)
  step = tf1.train.get_or_create_global_step()
  read = w + tf.stop_gradient(0.0 * _pause(gate, w.read_value()))
  return w, step, read * read


def _overtaken(value, step, num_updates):
  """A gradient that others overtake between its forward pass and its end."""
  with tf.control_dependencies([value]):
    others = tf1.assign_add(step, num_updates)
  with tf.control_dependencies([others]):
    return tf.identity(value)


@pytest.mark.parametrize('use_locking', [False, True])
@pytest.mark.parametrize('bound, want', [(5, True), (4, False)])
def test_five_updates_during_the_forward_pass_are_staleness_5(
    behavior, bound, want, use_locking):
  gate = _Gate()
  with tf.Graph().as_default():
    w, step, loss = _held_model(gate)
    optimizer = Optimizer(_sgd(), bound, use_locking=use_locking)
    train_op = optimizer.minimize(loss, global_step=step)
    others = tf1.assign_add(step, 5)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      _, late, accepted = _run_held(
          session, [train_op, optimizer.staleness, optimizer.accepted], gate,
          lambda: session.run(others))
      assert (late, accepted) == (5, want)
      # Accepted: 1 - .5 * 2 * 1 and one more step. Dropped: as it was.
      got = session.run([w, step, optimizer.stale_counter])
      assert got == ([0.0, 6, 0.0] if want else [1.0, 5, 1.0])


def test_a_delayed_read_of_a_variable_counts_as_late(behavior):
  # Another worker applies 5 updates while this one's read is on its way. The
  # step began before: 5. Ordering the reading before backprop only gives 0.
  gate = _Gate()
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w, first = (tf1.get_variable(name, initializer=1.0)
                for name in ('w', 'first'))
    # The gate opens only when `first` has been read, and so after the step.
    first = tf.identity(first)
    with tf.control_dependencies([_pause(gate, first)]):
      slow = w.read_value()
    optimizer = Optimizer(_sgd(), 100)
    train_op = optimizer.minimize(first * slow, global_step=step)
    others = tf1.assign_add(step, 5)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      _, late = _run_held(session, [train_op, optimizer.staleness], gate,
                          lambda: session.run(others))
  assert late == 5


def test_every_variable_is_read_after_the_step(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    table = tf1.get_variable('table', initializer=tf.ones([4, 2]))
    kernel = tf1.get_variable('kernel', initializer=tf.ones([2, 1]))
    rows = tf.nn.embedding_lookup(table, [1, 1])
    _, loss = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, x: (i + 1, x + tf.reduce_sum(tf.matmul(rows, kernel))),
        [0, 0.0])
    Optimizer(_sgd(), 1).minimize(loss, global_step=step)
    graph = tf1.get_default_graph()
    for variable in (table, kernel):
      source = getattr(variable, 'handle', None)
      source = graph.get_operation_by_name(variable.op.name)
      reads = [
          op for tensor in source.outputs for op in tensor.consumers()
          if op.type not in ('Assign', 'AssignVariableOp', 'VariableShape')
          and 'update' not in op.name and 'cond' not in op.name
          and not op.name.endswith(('IsInitializedOp', 'Read/ReadVariableOp'))]
      assert reads
      for read in reads:
        assert any(c.type in ('DeepCopy', 'ReadVariableOp')
                   for c in read.control_inputs), read.name


def test_update_ops_before_minimize_close_no_cycle(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    moving = tf1.get_variable('moving', initializer=0.0, trainable=False)
    loss = w * w
    with tf.control_dependencies([tf1.assign(moving, loss)]):
      train_op = Optimizer(_sgd(), 0).minimize(
          loss, global_step=tf1.train.get_or_create_global_step())
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      assert session.run([w, moving]) == [0.0, 1.0]


@pytest.mark.parametrize('make', [_sgd, _adam], ids=['sgd', 'adam'])
def test_never_stale_equals_the_bare_optimizer(behavior, make):
  results = []
  for wrap in (lambda o: o, lambda o: Optimizer(o, 0)):
    with tf.Graph().as_default():
      table = tf1.get_variable(
          'table', initializer=tf.reshape(tf.range(8.0), [4, 2]))
      rows = tf.gather(table, [1, 3, 1])
      bias = tf1.get_variable('bias', initializer=[1.0, 2.0])
      unused = tf1.get_variable('unused', initializer=1.0)
      loss = tf.reduce_sum(tf.square(rows + bias))
      optimizer = wrap(make())
      train_op = optimizer.minimize(
          loss, global_step=tf1.train.get_or_create_global_step(),
          var_list=[table, bias, unused])
      with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        for _ in range(3):
          session.run(train_op)
        results.append({v.op.name: session.run(v)
                        for v in tf1.global_variables()})
      assert optimizer.get_slot_names() == make().get_slot_names() or (
          optimizer.get_slot_names() == ['m', 'v'])
  counter = results[1].pop('stale_counter')
  assert counter == 0.0
  assert counter.dtype == np.float32
  np.testing.assert_equal(results[1], results[0])


def test_counters_are_exact_and_local(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    late = tf1.placeholder(tf.int64, [])
    gradient = _overtaken(w.read_value(), step, late)
    optimizer = Optimizer(_sgd(), 2)
    train_op = optimizer.apply_gradients([(gradient, w)], global_step=step)
    local = {v.op.name: v.dtype.base_dtype for v in tf1.local_variables()}
    assert local == {'DropStaleGradient/num_dropped': tf.int64,
                     'DropStaleGradient/num_applied': tf.int64}
    assert [v.op.name for v in optimizer.variables()] == [
        'stale_counter', *local]
    with tf1.Session() as session:
      # As programs written for contrib do: no local initialiser.
      session.run(tf1.global_variables_initializer())
      for delay in (0, 3, 9, 2):
        session.run(train_op, {late: delay})
      assert session.run([optimizer.num_dropped, optimizer.num_applied,
                          optimizer.stale_counter, step]) == [2, 2, 2.0, 16]


def test_ten_of_ten_dropped_show_a_fraction_of_1_and_the_old_ratio(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    gradient = _overtaken(w.read_value(), step, 1)
    undo = tf1.assign(step, 0)
    train_op = Optimizer(_sgd(), 0).apply_gradients([(gradient, w)], step)
    merged = tf1.summary.merge_all()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(10):
        session.run(train_op)
        session.run(undo)
      summary = tf1.Summary.FromString(session.run(merged))
  values = {v.tag: v.simple_value for v in summary.value}
  # Ten dropped / (step 0 + 1): no percentage; ten dropped of ten is all.
  assert values == {'Gradient_staleness_percentage': 10.0,
                    'Gradients_dropped_fraction': 1.0}


def test_second_instance_has_its_own_counter(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    for name in ('a', 'b'):
      w = tf1.get_variable(name, initializer=1.0)
      Optimizer(_sgd(), 3).minimize(w * w, global_step=step, var_list=[w])
    names = [v.op.name for v in tf1.global_variables()]
  assert names == ['global_step', 'a', 'stale_counter', 'b',
                   'DropStaleGradient_1/stale_counter']


def test_gradients_of_tf_gradients_are_measured_too(behavior):
  gate = _Gate()
  with tf.Graph().as_default():
    w, step, loss = _held_model(gate)
    optimizer = Optimizer(_sgd(), 4)
    train_op = optimizer.apply_gradients(
        list(zip(tf.gradients(loss, [w]), [w])), global_step=step)
    others = tf1.assign_add(step, 5)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      _run_held(session, train_op, gate, lambda: session.run(others))
      assert session.run([w, step]) == [1.0, 5]


def test_without_global_step_the_graphs_is_measured_and_not_advanced(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0)
    train_op = Optimizer(_sgd(), 0).minimize(w * w)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      assert session.run([w, step]) == [0.0, 0]


def test_no_global_step_at_all_is_a_clear_error(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    with pytest.raises(ValueError, match='`global_step` must .*Received: None'):
      Optimizer(_sgd(), 0).minimize(w * w)


@pytest.mark.parametrize('make_step', [lambda: 3, lambda: tf.constant(3)])
def test_a_step_that_is_no_variable_is_a_clear_error(behavior, make_step):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    with pytest.raises(TypeError, match='`global_step` must be a variable'):
      Optimizer(_sgd(), 0).minimize(w * w, global_step=make_step())


def test_reading_is_no_op_that_could_be_folded(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    optimizer = Optimizer(_sgd(), 0)
    optimizer.minimize(w * w, global_step=step)
    sub = optimizer.staleness.op
    types = {tensor.op.type for tensor in sub.inputs}
    types.discard('Cast')
    assert types <= {'DeepCopy', 'ReadVariableOp'}


@pytest.mark.parametrize('staleness, error', [
    (-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_bad_staleness_is_refused_at_construction(staleness, error):
  with pytest.raises(error, match='`staleness` must .*Received: '):
    Optimizer(_sgd(), staleness)


@pytest.mark.parametrize('name, expected', (
    (None, 'DropStaleGradient'), ('mine', 'mine')))
def test_the_update_has_the_name_that_is_asked_for(behavior, name, expected):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    optimizer = drop_stale_gradient.DropStaleGradientOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 0)
    assert optimizer.accepted is None and optimizer.staleness is None
    update = optimizer.apply_gradients(
        optimizer.compute_gradients(v * v), step, name)
    assert update.name == expected
    assert optimizer.accepted.dtype == tf.bool


def test_the_summary_counts_the_stale_among_all_steps(behavior):
  # 3 / (5 + 1), of steps that were and one that is.
  with tf.Graph().as_default(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=1.0)
    step = tf1.train.get_or_create_global_step()
    drop_stale_gradient.DropStaleGradientOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 0).minimize(v * v, step)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    stale, = [each for each in (*tf1.global_variables(), *tf1.local_variables())
              if each.name.endswith('stale_counter:0')]
    step.load(5, session)
    stale.load(3, session)
    written = tf1.Summary.FromString(session.run(tf1.summary.merge_all()))
    ratio, = [value.simple_value for value in written.value
              if value.tag == 'Gradient_staleness_percentage']
    assert ratio == 0.5


def test_the_bound_may_be_a_tensor(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    bound = tf1.placeholder(tf.int64, [])
    w = tf1.get_variable('w', initializer=1.0)
    step = tf1.train.create_global_step()
    gradient = _overtaken(w * 1.0, step, 2)
    train = Optimizer(_sgd(), bound).apply_gradients([(gradient, w)], step)
    session.run(tf1.global_variables_initializer())
    for value, steps, want in ((1, 2, 1.0), (2, 5, 0.5)):
      session.run(train, {bound: value})
      assert session.run([step, w]) == [steps, want]
