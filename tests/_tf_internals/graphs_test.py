# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs are changed, and tell about themselves, as the functions say."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import graphs

tf1 = tf.compat.v1
_KEYS = tf1.GraphKeys


def test_an_input_is_redirected():
  with tf.Graph().as_default(), tf1.Session() as session:
    total = tf.add(1.0, 2.0)
    graphs.redirect_input(total.op, 1, tf.constant(5.0))
    assert session.run(total) == 6.0


def test_all_inputs_that_read_a_tensor_are_redirected():
  with tf.Graph().as_default(), tf1.Session() as session:
    one, two = tf.constant(1.0), tf.constant(2.0)
    ops = [tf.add_n([one, two, one]).op, tf.negative(two).op]
    graphs.redirect(ops, one, tf.constant(5.0))
    assert session.run([op.outputs[0] for op in ops]) == [12.0, -2.0]


def test_an_op_waits_for_what_is_added():
  with tf.Graph().as_default():
    first, second = tf.no_op(), tf.no_op()
    graphs.add_control_inputs(second, [first])
    assert second.control_inputs == [first]


def test_new_ops_are_watched():
  seen = []

  def around(create, op, *args, **kwargs):
    create(op, *args, **kwargs)
    seen.append(op.name)

  with tf.Graph().as_default() as graph:
    tf.no_op('before')
    graphs.watch_new_ops(graph, around)
    graphs.watch_new_ops(graph, around)
    tf.no_op('after')
  assert seen == ['after', 'after']


@pytest.mark.parametrize('num_steps', [0, 3])
def test_branches_are_left_and_loops_are_not(behavior, num_steps):
  del behavior
  made = []

  def make(value):
    with tf.control_dependencies([value]), graphs.outside_branches():
      made.append(tf.random.uniform([]))
    assert not [op for op in made[-1].op.control_inputs if op is value.op]
    return value + 1.0

  with tf.Graph().as_default() as graph, tf1.Session() as session:
    if num_steps:
      tf.while_loop(lambda x: x < num_steps, lambda x: tf.cond(
          x < 2.0, lambda: make(x), lambda: x + 1.0), [0.0])
      assert graphs.branch_of(made[0].op) != (graph, None)
    else:
      tf.cond(tf1.placeholder_with_default(True, []),
              lambda: make(tf.constant(1.0)), lambda: 0.0)
      assert graphs.branch_of(made[0].op) == (graph, None)
      session.run(made)


def test_what_is_made_in_a_branch_is_usable_in_it(behavior):
  del behavior
  usable = []

  def branch():
    inside.append(tf.constant(1.0))
    usable.extend(map(graphs.is_usable_here, (outside, *inside)))
    return inside[-1]

  with tf.Graph().as_default():
    inside, outside = [], tf.constant(1.0)
    for _ in range(2):
      tf.cond(tf1.placeholder_with_default(True, []), branch, lambda: 0.0)
    usable.extend(map(graphs.is_usable_here, (outside, *inside)))
  with tf.Graph().as_default():
    assert not graphs.is_usable_here(outside)
  # In the first branch, in the second one, and after both.
  assert usable == [True, True, True, False, True, True, False, False]


def test_an_op_can_precede_those_in_its_branch_and_its_loop():
  with tf.Graph().as_default():
    tf1.disable_control_flow_v2()
    try:
      ops = {'outside': tf.constant(0.0).op}
      tf.cond(tf1.placeholder_with_default(True, []),
              lambda: ops.setdefault('branch', tf.constant(1.0).op).outputs[0],
              lambda: 0.0)

      def body(x):
        ops['loop'] = (x + 1.0).op
        return ops['loop'].outputs[0]

      tf.while_loop(lambda x: x < 3.0, body, [ops['outside'].outputs[0]])
    finally:
      tf1.enable_control_flow_v2()
  assert [(a, b) for a in ops for b in ops if graphs.can_precede(
      ops[a], ops[b])] == [('outside', 'outside'), ('outside', 'branch'),
                           ('branch', 'branch'), ('loop', 'loop')]
  again, = (op for op in ops['loop'].graph.get_operations()
            if op.type == 'NextIteration')
  entrance, = (op for op in ops['loop'].graph.get_operations()
               if op.type == 'Enter')
  assert graphs.can_precede(ops['outside'], entrance)
  assert graphs.repeats_loop_of(again, ops['loop'])
  assert not graphs.repeats_loop_of(again, ops['outside'])


def test_a_branch_and_a_loop_of_control_flow_v1_are_seen(behavior):
  seen = []

  def look(value):
    seen.append(graphs.branch_or_loop())
    return value + 1.0

  with tf.Graph().as_default():
    assert graphs.branch_or_loop() is None
    condition = tf1.placeholder_with_default(True, [])
    tf.cond(condition, lambda: look(tf.constant(1.0)), lambda: 0.0)
    tf.while_loop(lambda x: x < 3.0, look, [0.0])
  assert len(seen) == 2
  assert all((context is not None) == (behavior == 'v1') for context in seen)


def test_a_branch_keeps_its_train_ops(behavior):
  del behavior

  def branch():
    with graphs.private_train_ops():
      tf1.add_to_collection(_KEYS.TRAIN_OP, tf.no_op('inside'))
    return 1.0

  with tf.Graph().as_default() as graph:
    tf.cond(tf1.placeholder_with_default(True, []), branch, lambda: 0.0)
    # What a session of this graph could run, and no more.
    assert all(op.graph is graph for op in graph.get_collection(_KEYS.TRAIN_OP))


def test_summaries_of_a_branch_are_moved(behavior):
  with tf.Graph().as_default() as graph:
    outside, moved = tf1.summary.scalar('outside', 1.0), []

    def branch():
      with graphs.summaries_moved(moved):
        tf1.summary.scalar('inside', 1.0)
      return list(moved)

    result = tf.cond(tf1.placeholder_with_default(True, []), branch,
                     lambda: [tf.constant('')])
    assert len(moved) == len(result) == 1
    assert graph.get_collection(_KEYS.SUMMARIES) == [outside]


def test_variables_stay_out_of_collections():
  with tf.Graph().as_default() as graph:
    before = tf1.get_variable('before', [])
    with graphs.private_variables():
      tf.Variable(1.0, name='inside')
    after = tf1.get_variable('after', [])
    for key in (_KEYS.GLOBAL_VARIABLES, _KEYS.TRAINABLE_VARIABLES):
      assert graph.get_collection(key) == [before, after]


def test_ops_sit_next_to_a_variable(behavior):
  del behavior
  with tf.Graph().as_default():
    with tf1.device('/device:CPU:1'):
      variable = tf1.get_variable('v', [])
    with graphs.colocate_with(variable):
      assert tf.constant(1.0).op.colocation_groups() == (
          variable.op.colocation_groups())


def test_devices_are_listed_from_the_outermost_in():
  with tf.Graph().as_default():
    assert not graphs.device_functions()
    with tf1.device('/job:worker'), tf1.device(lambda op: '/device:CPU:1'):
      assert len(graphs.device_functions()) == 2
      assert callable(graphs.device_functions()[1])


@pytest.mark.parametrize('jit_compile', [True, False])
def test_compilation_is_known(jit_compile):
  seen = []

  @tf.function(jit_compile=jit_compile)
  def function():
    seen.append(graphs.is_compiled())
    return tf.cond(tf.constant(True), inner, lambda: 0.0)

  def inner():
    seen.append(graphs.is_compiled())
    return 1.0

  function.get_concrete_function()
  assert seen == [jit_compile] * 2


@pytest.mark.parametrize('message, is_condition', [
    ('Cannot colocate nodes {{a/else/_1/Read}} and {{b}}: Cannot merge devices '
     'with incompatible jobs: x and y', True),
    ('Cannot colocate nodes {{a}} and {{b}}: Cannot merge devices with '
     'incompatible jobs: x and y', False),
    ('Incompatible shapes', False)])
def test_an_unplaced_condition_is_told_by_its_message(message, is_condition):
  # cluster_training_test.py has TensorFlow raise one.
  error = tf.errors.InvalidArgumentError(None, None, message)
  assert graphs.is_unplaced_condition(error) is is_condition


def test_branches(behavior):
  ops = []

  def branch():
    ops.append(tf.constant(1.0).op)
    return 1.0

  with tf.Graph().as_default() as graph:
    predicate = tf1.placeholder(tf.bool, [])
    tf.cond(predicate, branch, lambda: 0.0)
    assert not graphs.is_in_branch_or_loop(predicate.op)
  # A branch of control flow v2 has a graph, one of v1 a context.
  assert (ops[0].graph is graph) == graphs.is_in_branch_or_loop(ops[0])


def test_who_waits_for_a_branch_waits_for_what_is_in_it(behavior):
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=0, use_resource=True)
    done = tf.cond(
        tf1.placeholder_with_default(True, []),
        lambda: tf.identity(tf1.assign_add(variable, 1)), lambda: 0)
    reading = tf.raw_ops.ReadVariableOp(
        resource=variable.handle, dtype=tf.int32)
    branch = done.op.inputs[0].op if behavior == 'v2' else done.op
    graphs.add_control_inputs(reading.op, [branch])
    with tf1.Session() as session:
      session.run(variable.initializer)
      # Without the results two of three runs were too early.
      assert [session.run([reading, done])[0] for _ in range(50)] == list(
          range(1, 51))


def test_who_waits_for_a_result_waits_for_the_function(behavior):
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', initializer=0, use_resource=True)
    advance = tf1.assign_add(variable, 1)

    def run(x):
      session.run(advance)
      return x

    fed = tf1.placeholder(tf.float32, [])
    result = tf.function(lambda x: tf.ensure_shape(tf.numpy_function(
        run, [x], tf.float32, stateful=False), []))(fed)
    with tf.control_dependencies([graphs.result_to_await(result)]):
      reading = variable.read_value()
    constant = tf.constant(1.0)
    assert graphs.result_to_await(constant) is constant
    with tf1.Session() as session:
      session.run(variable.initializer)
      assert [session.run([reading, result], {fed: 1.0})[0]
              for _ in range(3)] == [1, 2, 3]


def test_a_function_is_told_from_branches(behavior):
  found = []

  def branch():
    found.append(graphs.is_in_function())
    return 1.0

  with tf.Graph().as_default():
    predicate = tf1.placeholder(tf.bool, [])
    tf.cond(predicate, lambda: tf.cond(predicate, branch, lambda: 2.0), branch)
    assert not graphs.is_in_function()
    tf.function(branch).get_concrete_function()
    tf.function(lambda: tf.cond(tf.constant(True), branch, branch)
               ).get_concrete_function()
  assert found == [False, False, True, True, True]


def test_an_op_is_moved_beside_another(behavior):
  with tf.Graph().as_default() as graph:
    with tf.device('/cpu:0'):
      first = tf.constant(1.0, name='first')
    with tf.device('/cpu:1'):
      second = tf.constant(2.0, name='second')
    with graph.colocate_with(first.op):
      value = tf.identity(first)
    graphs.move_beside(value.op, second.op)
    assert value.op.colocation_groups() == [b'loc:@second']
    metadata = tf1.RunMetadata()
    config = tf1.ConfigProto(device_count={'CPU': 2})
    with tf1.Session(config=config) as session:
      assert session.run(value, run_metadata=metadata, options=tf1.RunOptions(
          output_partition_graphs=True)) == 1.0
  devices = {node.name: node.device for partition in metadata.partition_graphs
             for node in partition.node}
  assert devices[value.op.name].endswith('CPU:1')
