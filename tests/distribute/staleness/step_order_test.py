# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of readings, the model's work and writes of the step."""

import pytest
import tensorflow as tf

from tfplugin.distribute.staleness import step_order

tf1 = tf.compat.v1


def _step():
  return tf1.train.get_or_create_global_step()


def _waits_for(op, other):
  """Whether `op` runs after `other`."""
  seen, waiting = set(), [op]
  while waiting:
    op = waiting.pop()
    if op not in seen:
      seen.add(op)
      waiting += [*(t.op for t in op.inputs), *op.control_inputs]
  return other in seen


def test_each_kind_of_work_waits_and_its_handles_do_not(behavior):
  with tf.Graph().as_default():
    reading = step_order.read_step(_step())
    queue = tf.queue.FIFOQueue(1, tf.float32, shapes=[[]])
    iterator = tf1.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensors(1.0))
    constant = tf.constant(3.0)
    v = tf1.get_variable('v', initializer=1.0)
    work = [queue.dequeue(), iterator.get_next(), tf.random.uniform([]),
            v.read_value(), tf.numpy_function(lambda: 1.0, [], tf.float32)]
    end = tf.add_n([*(tf.reshape(x, []) for x in work), constant])
    step_order.order_after(reading, [end.op])
    for tensor in work:
      source = tensor.op if tensor.op.control_inputs else tensor.op.inputs[0].op
      assert _waits_for(source, reading.op), source.type
    for op in (constant.op, v.op, queue.queue_ref.op):
      assert not op.control_inputs


def test_what_needs_nothing_waits_by_itself(behavior):
  with tf.Graph().as_default():
    reading = step_order.read_step(_step())
    constant = tf.constant(1.0)
    step_order.order_after(reading, [constant.op])
    assert constant.op.control_inputs == [reading.op]


def test_a_loop_inside_the_model_waits_at_its_entrance(behavior):
  with tf.Graph().as_default():
    step = _step()
    reading = step_order.read_step(step)
    v = tf1.get_variable('v', initializer=2.0)
    _, product = tf.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, x * v), [0, 1.0])
    step_order.order_after(reading, [product.op])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run(product) == 8.0
    assert _waits_for(product.op, reading.op)


@pytest.mark.parametrize('in_branch', [False, True])
def test_a_write_before_all_work_precedes_the_reading(behavior, in_branch):
  with tf.Graph().as_default():
    with tf1.variable_scope('', use_resource=in_branch or None):
      step = _step()
    v = tf1.get_variable('v', initializer=1.0)
    write = tf1.assign_add(step, 1) if not in_branch else tf.cond(
        tf1.placeholder_with_default(True, []),
        lambda: tf.identity(tf1.assign_add(step, 1)),
        lambda: tf.zeros([], tf.int64))
    with tf.control_dependencies([write]):
      gradient = v * 2.0
    reading = step_order.read_step_before_forward(step, [gradient])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run([reading, gradient]) == [1, 2.0]


def test_a_write_between_work_and_gradient_follows_the_reading(behavior):
  with tf.Graph().as_default():
    step = _step()
    v = tf1.get_variable('v', initializer=1.0)
    value = v + 1.0
    with tf.control_dependencies([value]):
      write = tf1.assign_add(step, 1)
    with tf.control_dependencies([write]):
      gradient = tf.identity(value)
    reading = step_order.read_step_before_forward(step, [gradient])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert session.run([reading, gradient]) == [0, 2.0]


def _readings(step):
  first, second = step_order.read_step(step), step_order.read_step(step)
  step_order.keep_own_writes_out(first, second)
  return first, second


def test_writes_wait_for_the_second_reading_once_they_run_with_it(behavior):
  with tf.Graph().as_default():
    step = _step()
    earlier = tf1.assign_add(step, 1).op
    _, second = _readings(step)
    later, alone = (tf1.assign_add(step, 1).op for _ in range(2))
    with tf.control_dependencies([second]):
      update = tf.no_op()
    assert second.op not in {*earlier.control_inputs, *later.control_inputs}
    tf.group(tf.group(earlier), later, update)
    for op in (earlier, later):
      assert second.op in op.control_inputs
    assert second.op not in alone.control_inputs


def test_what_only_reads_the_step_is_left_alone(behavior):
  with tf.Graph().as_default():
    step = _step()
    _, second = _readings(step)
    rate = 1.0 / tf.cast(step.read_value() + 1, tf.float32)
    branch = tf.cond(tf1.placeholder_with_default(True, []),
                     lambda: step.read_value() + 1,
                     lambda: tf.zeros([], tf.int64))
    tf.group(second, rate, branch)
    assert not _waits_for(rate.op, second.op)
    assert not _waits_for(branch.op, second.op)


def test_a_write_that_the_reading_waits_for_closes_no_cycle(behavior):
  with tf.Graph().as_default():
    step = _step()
    write = tf1.assign_add(step, 1).op
    first = step_order.read_step(step)
    with tf.control_dependencies([write]):
      second = step_order.read_step(step)
    step_order.keep_own_writes_out(first, second)
    both = tf.group(second, write)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(both)
      assert session.run(second) == 2


def test_two_that_hold_a_lock_do_not_wait_for_each_other(behavior):
  with tf.Graph().as_default():
    step = _step()
    mutex = tf.raw_ops.MutexV2(shared_name='m')
    with tf.control_dependencies([tf.raw_ops.MutexLock(mutex=mutex)]):
      write = tf1.assign_add(step, 1).op
    with tf.control_dependencies([tf.raw_ops.MutexLock(mutex=mutex)]):
      second = step_order.read_step(step)
    step_order.keep_own_writes_out(step_order.read_step(step), second)
    tf.group(second, write)
    assert second.op not in write.control_inputs


def test_a_write_runs_in_steps_that_skip_the_branch_of_the_reading(behavior):
  with tf.Graph().as_default():
    step = _step()
    first = step_order.read_step(step)
    take = tf1.placeholder(tf.bool, [])

    def branch():
      second = step_order.read_step(step)
      step_order.keep_own_writes_out(first, second)
      return tf.identity(second) - first

    late = tf.cond(take, branch, lambda: tf.constant(-1, tf.int64))
    write = tf1.assign_add(step, 1)
    both = tf.tuple([late, tf.identity(write)])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      assert [session.run(both, {take: taken})
              for taken in (True, False, True)] == [[0, 1], [-1, 2], [0, 3]]


def test_a_write_waits_for_the_branch_of_the_reading(behavior):
  # Of control flow v2 it is a graph of its own: writes wait for its call.
  with tf.Graph().as_default():
    step = _step()
    first = step_order.read_step(step)

    def branch():
      second = step_order.read_step(step)
      step_order.keep_own_writes_out(first, second)
      return tf.identity(second) - first

    late = tf.cond(tf1.placeholder(tf.bool, []), branch,
                   lambda: tf.constant(-1, tf.int64))
    write = tf1.assign_add(step, 1).op
    tf.group(late, write)
    source = late.op if late.op.type != 'Identity' else late.op.inputs[0].op
    assert _waits_for(write, source)
