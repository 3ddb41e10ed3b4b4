# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The ops that TensorFlow makes are those that the functions know."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import op_types
from tfplugin._tf_internals import strategies

tf1 = tf.compat.v1


@tf.RegisterGradient('TfpluginTestTimesTen')
def _times_ten(op, *gradients):
  del op
  return [10.0 * gradient for gradient in gradients]


def _resource_variable():
  return tf1.get_variable('v', [3], use_resource=True)


# Ops that read the value of a resource, and others that do not write it.
_READS = {'ReadVariableOp', 'ResourceGather', 'ResourceGatherNd'}
_QUESTIONS = {'DisableCopyOnRead', 'VarIsInitializedOp', 'VariableShape'}
_OF_REF = {'DeepCopy', 'Identity', 'IsVariableInitialized'}
# Ops that hand a variable on: from their first input, or from any.
_FROM_FIRST = {'Enter', 'Identity', 'RefEnter', 'RefIdentity', 'RefSwitch',
               'Switch'}
_FROM_ANY = {'Exit', 'IdentityN', 'Merge', 'NextIteration', 'RefExit',
             'RefMerge', 'RefNextIteration'}


def test_the_tables_have_their_members():
  assert op_types.VALUE_READS == _READS
  assert op_types.READS == _READS | _QUESTIONS | {'IsVariableInitialized'}
  assert op_types._READS_OF_REF == _READS | _QUESTIONS | _OF_REF
  assert op_types._HANDS_ON == _FROM_FIRST
  assert op_types.PASSES_ON == _FROM_FIRST | _FROM_ANY


@pytest.mark.parametrize('use_resource', [True, False])
@pytest.mark.parametrize('ask', [tf1.is_variable_initialized, tf.identity])
def test_questions_about_a_variable_are_one_computation(use_resource, ask):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', [3], use_resource=use_resource)
    assert op_types.is_same_computation(ask(v).op, ask(v).op)


@pytest.mark.parametrize('name', sorted(
    _READS | _QUESTIONS | _OF_REF | _FROM_FIRST | _FROM_ANY))
def test_a_member_is_an_op_of_tensorflow(name):
  assert hasattr(tf.raw_ops, name)


@pytest.mark.parametrize('use_resource', [True, False])
def test_a_variable_is_known_by_its_op(use_resource):
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', [], use_resource=use_resource)
    old = tf1.Variable(1.0, use_resource=use_resource)
    constant = tf.constant(1.0)
  assert op_types.is_variable(variable.op)
  assert op_types.is_variable(old.op)
  assert not op_types.is_variable(constant.op)


def test_a_captured_variable_is_known_and_a_captured_table_is_not():
  variable = tf.Variable(1.0)
  table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)

  @tf.function
  def function():
    return variable + tf.cast(table.size(), tf.float32)

  captured = [inner.op for _, inner in
              function.get_concrete_function().graph.captures]
  assert sorted(map(op_types.is_variable, captured)) == [False, True]


@pytest.mark.parametrize('make, begins', [
    (lambda v: v.read_value().op.inputs[0].op, True),
    (lambda v: tf1.assign(v, [0.0] * 3).op, True),
    (lambda v: tf.raw_ops.RandomUniform(shape=[1], dtype=tf.float32).op, True),
    (lambda v: tf1.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensors(1.0)).get_next().op, True),
    (lambda v: tf.queue.FIFOQueue(1, tf.int32).queue_ref.op, False),
    (lambda v: v.op, False),
    (lambda v: tf.constant(1.0).op, False),
    (lambda v: tf.add(1.0, 1.0).op, False),
])
def test_work_begins_where_a_step_may_find_another_value(make, begins):
  with tf.Graph().as_default():
    assert op_types.begins_work(make(_resource_variable())) == begins


def test_a_loop_begins_work_and_handing_on_a_handle_does_not():
  with tf.Graph().as_default() as graph:
    tf1.disable_control_flow_v2()
    try:
      v = _resource_variable()
      tf.while_loop(lambda x: x[0] < 3.0, lambda x: x + v, [tf.zeros([3])])
    finally:
      tf1.enable_control_flow_v2()
    enters = [op for op in graph.get_operations() if op_types.enters_loop(op)]
    again, = [op for op in graph.get_operations() if op_types.repeats_loop(op)]
  assert not op_types.enters_loop(again)
  assert {op.inputs[0].dtype: op_types.begins_work(op) for op in enters} == {
      tf.float32: True, tf.resource: False}
  handle, = (op for op in enters if op.inputs[0].dtype == tf.resource)
  assert op_types.origin_of(handle.outputs[0]) is v.op
  assert op_types.origin_of(again.outputs[0]) is again


@pytest.mark.parametrize('use_resource', [True, False])
@pytest.mark.parametrize('make, writes', [
    (lambda v: tf1.assign(v, [0.0] * 3), True),
    (lambda v: tf1.assign_add(v, [1.0] * 3), True),
    (lambda v: tf1.scatter_update(v, [0], [1.0]), True),
    (lambda v: v.read_value(), False),
    (lambda v: tf.gather(v, [0]), False),
    (lambda v: tf1.is_variable_initialized(v), False),
    (lambda v: tf.raw_ops.DeepCopy(x=v.read_value()), False),
])
def test_writes_of_a_variable_are_known(use_resource, make, writes):
  with tf.Graph().as_default() as graph:
    v = tf1.get_variable('v', [3], use_resource=use_resource)
    before = set(graph.get_operations())
    make(v)
    made = [op for op in graph.get_operations() if op not in before]
    assert any(op_types.writes_variable(op, v.op) for op in made) == writes
    other = tf1.get_variable('other', [3], use_resource=use_resource)
    assert not any(op_types.writes_variable(op, other.op) for op in made)


@pytest.mark.parametrize('make, writes', [
    (lambda v: tf.identity(v.assign_add([1.0] * 3)), True),
    (lambda v: v.read_value() + 1.0, False)])
def test_writes_in_a_branch_are_known(behavior, make, writes):
  del behavior
  with tf.Graph().as_default() as graph:
    v = _resource_variable()
    before = set(graph.get_operations())
    tf.cond(tf1.placeholder_with_default(True, []), lambda: make(v),
            lambda: tf.zeros([3]))
    made = [op for op in graph.get_operations() if op not in before]
    assert any(op_types.writes_variable(op, v.op) for op in made) == writes


def test_a_lock_is_known():
  with tf.Graph().as_default():
    mutex = tf.raw_ops.MutexV2()
    assert op_types.takes_lock(tf.raw_ops.MutexLock(mutex=mutex).op)
    assert not op_types.takes_lock(mutex.op)


def test_a_sum_over_tpu_shards_is_known():
  with tf.Graph().as_default(), strategies.tpu_function.tpu_shard_context(2):
    total = tf1.tpu.cross_replica_sum(tf.constant(1.0))
    assert op_types.is_tpu_sum(total.op)
    assert not op_types.is_tpu_sum(tf.add(1.0, 1.0).op)


@pytest.mark.parametrize('identity', [
    tf.identity, lambda x: tf.identity_n([x])[0],
    lambda x: tf.raw_ops.IdentityN(input=[x])[0]])
def test_an_identity_gets_the_gradient(identity):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf.constant(1.0)
    with op_types.identity_gradient('TfpluginTestTimesTen'):
      inside = identity(x)
    outside = identity(x)
    gradients = [tf1.gradients(y, x)[0] for y in (inside, outside)]
    assert session.run(gradients) == [10.0, 1.0]


@pytest.mark.parametrize('make', [
    lambda: tf1.ConditionalAccumulator(tf.float32).accumulator_ref.op,
    lambda: tf1.SparseConditionalAccumulator(tf.float32).accumulator_ref.op])
def test_accumulators_of_gradients_are_known(behavior, make):
  with tf.Graph().as_default():
    assert op_types.accumulates_gradients(make())
    assert not op_types.accumulates_gradients(tf.constant(1.0).op)


def test_what_fills_a_table_or_a_queue():
  with tf.Graph().as_default() as graph:
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    queue = tf.queue.FIFOQueue(2, [tf.int64], [[]])
    key = tf.constant([1], tf.int64)
    changes = {table.insert(key, key), table.remove(key),
               queue.enqueue(key[0]), queue.enqueue_many([key])}
    table.lookup(key)
    queue.dequeue()
    assert changes == {op for op in graph.get_operations()
                       if op_types.fills_table_or_queue(op)}


def _loop(x):
  return tf.while_loop(lambda i: tf.exp(i) < 9.0, lambda i: tf.sqrt(i) + 3.0,
                       [x])[0]


@pytest.mark.parametrize('make, expected', [
    (lambda x: tf.cond(x > 0, lambda: tf.exp(x), lambda: tf.sqrt(x)),
     [['Exp'], ['Sqrt']]),
    (lambda x: tf.switch_case(tf.cast(x, tf.int32), [
        lambda: tf.exp(x), lambda: tf.sqrt(x)]), [['Exp'], ['Sqrt']]),
    # The condition, too.
    (_loop, [['Exp'], ['Sqrt']]),
    (lambda x: tf.function(tf.exp)(x), [['Exp']]),
    (lambda x: tf.function(_loop)(x), [['Exp', 'Sqrt']]),
    (tf.sin, [])])
def test_functions_of_an_op(make, expected):

  def known(ops):
    return sorted(op.type for op in ops if op.type in ('Exp', 'Sqrt'))

  with tf.Graph().as_default() as graph:
    make(tf1.placeholder(tf.float32, []))
    op = next(filter(op_types.calls_functions, graph.get_operations()),
              graph.get_operations()[-1])
    assert len(op_types.functions_of(op)) == len(expected)
    if len(expected) > 1:
      assert sorted(known(inner.get_operations())
                    for inner in op_types.functions_of(op)) == expected
    assert known(op_types.ops_of_bodies(op)) == sorted(sum(expected, []))


def test_what_makes_a_variable(behavior):
  with tf.Graph().as_default() as graph:
    v = tf1.get_variable('v', initializer=1.0)
    made = [op for op in graph.get_operations() if op_types.makes_variable(op)]
    assert made == [v.op]


def test_a_constant_may_not_vary():
  with tf.Graph().as_default():
    assert not op_types.may_vary(tf.constant(1.0).op)
    assert op_types.may_vary(tf1.placeholder(tf.float32).op)
