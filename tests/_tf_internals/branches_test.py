# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the real TensorFlow: where a branch is, and what it captured."""

import contextlib

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1


@contextlib.contextmanager
def _control_flow(*, is_v2):
  choose = (tf1.disable_control_flow_v2, tf1.enable_control_flow_v2)
  was_v2 = tf1.control_flow_v2_enabled()
  choose[is_v2]()
  try:
    yield
  finally:
    choose[was_v2]()


def _in_branch(pred, fn):
  """Calls `fn` in one branch; returns its result, and the `tf.cond`."""
  results = []
  output = tf.cond(
      pred, lambda: results.append(fn()) or tf.zeros([]), lambda: tf.ones([]))
  return results[0], output


def _nested(pred, other, fn):
  result, _ = _in_branch(pred, lambda: _in_branch(other, fn)[0])
  return result


def test_a_branch_is_known_and_a_loop_is_none(behavior):
  with tf.Graph().as_default():
    outside = _tf_internals.Place()
    assert outside == _tf_internals.Place()
    assert not _tf_internals.Place().is_branch_of(outside)
    inside, _ = _in_branch(tf.constant(True), _tf_internals.Place)
    assert inside != outside
    assert inside.is_branch_of(outside)
    assert _nested(tf.constant(True), tf.constant(False),
                   _tf_internals.Place).is_branch_of(outside)
    in_loop = []
    tf.while_loop(lambda i: i < 1, lambda i: in_loop.append(
        _tf_internals.Place()) or i + 1, [0])
    assert in_loop[0] != outside
    assert not in_loop[0].is_branch_of(outside)
    traced = tf.function(lambda: in_loop.append(_tf_internals.Place()) or 1)
    traced.get_concrete_function()
    assert not in_loop[-1].is_branch_of(outside)


def test_branches_of_v2_are_known_two_deep_in_one_of_v1():
  places = []

  def branch():
    places.append(_tf_internals.Place())
    with _control_flow(is_v2=True):
      places.append(_nested(tf.constant(True), tf.constant(False),
                            _tf_internals.Place))
    return tf.zeros([])

  with _control_flow(is_v2=False), tf.Graph().as_default():
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: tf.ones([]))
  of_v1, of_v2 = places
  assert of_v1.context is not None and of_v2.graph is not of_v1.graph
  assert of_v2.is_branch_of(of_v1)


def test_conditions_of_branches(behavior):
  with tf.Graph().as_default():
    pred, other = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.bool, [])
    place = _nested(pred, other, _tf_internals.Place)
    sources = [_source(condition) for condition in place.conditions()]
    assert [s.op.name for s in sources] == [
        other.op.name, pred.op.name]
    assert _tf_internals.Place().conditions() == []


def _source(tensor):
  """Follows a condition through captures, and what control flow v1 adds."""
  while True:
    tensor = _tf_internals.outside_of_functions(tensor)
    if not tensor.op.inputs:
      return tensor
    tensor = tensor.op.inputs[0]


def test_ops_are_made_in_a_place_that_is_entered(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    outside = _tf_internals.Place()
    pred = tf1.placeholder_with_default(False, [])
    v = tf1.get_variable('v', initializer=1.0, use_resource=True)

    def branch():
      with tf.control_dependencies([v.assign(5.0)]):
        inside = _tf_internals.Place()
      with outside.entered():
        total = v + 1.0
        assert _tf_internals.Place() == outside
      assert not tf1.get_default_graph().building_function or inside != outside
      with inside.entered():
        added = v.assign_add(2.0)
      return total, tf.group(added)

    captured = []
    done = tf.cond(
        pred, lambda: captured.append(branch()) or _done(captured[0][1]),
        lambda: 0.0)
    session.run(v.initializer)
    assert session.run(captured[0][0]) == 2.0
    session.run(done)
    assert session.run(v.read_value()) == 1.0
    session.run(done, {pred: True})
    assert session.run(v.read_value()) == 7.0


def _done(op):
  with tf.control_dependencies([op]):
    return tf.constant(1.0)


def test_a_captured_tensor_is_found_outside(behavior):
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [])
    if behavior == 'v2':
      inside, _ = _in_branch(x > 0, lambda: tf.identity(x).op.inputs[0])
      assert inside is not x
      assert _tf_internals.outside_of_functions(inside) is x
    assert _tf_internals.outside_of_functions(x) is x


def test_conditions_of_an_op(behavior):
  with tf.Graph().as_default():
    pred, other = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.bool, [])
    op = _nested(pred, other, lambda: tf.constant(1.0).op)
    inner, outer = _tf_internals.conditions_of(op)
    for condition, wanted in ((inner, other), (outer, pred)):
      condition = _tf_internals.outside_of_functions(condition)
      while condition.op.type in ('Identity', 'Switch'):  # Of control flow v1.
        condition = condition.op.inputs[0]
      assert condition is wanted
    assert not _tf_internals.is_in_loop(op)
    assert not _tf_internals.conditions_of(tf.constant(1.0).op)


def test_a_loop_and_its_condition(behavior):
  with tf.Graph().as_default():
    ops, last = [], tf1.placeholder(tf.int32, [])
    tf.while_loop(
        lambda i: i < last, lambda i: ops.append(tf.identity(i).op) or i + 1,
        [0])
    assert _tf_internals.is_in_loop(ops[0])
    condition, = _tf_internals.conditions_of(ops[0])
    assert condition.dtype == tf.bool
    assert not _tf_internals.is_in_loop(last.op)


def test_inputs_of_a_loop_while_its_gradient_is_built():
  sizes = []

  @tf.custom_gradient
  def sine(x):
    def gradient(upstream):
      result = upstream * tf.cos(x)  # Gives the loop's body another input.
      body = x.graph
      sizes.append((len(_tf_internals.call_of(body).inputs), len(body.inputs)))
      for inside in body.inputs:
        sources = _tf_internals.sources_of(inside)
        assert {source.dtype for source in sources} == {inside.dtype}
      return result
    return tf.sin(x), gradient

  with _control_flow(is_v2=True), tf.Graph().as_default():
    start = tf1.placeholder(tf.float32, [])
    _, last = tf.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, sine(x)), [0, start])
    tf.gradients(last, start)
  (of_op, of_body), = sizes
  assert of_op < of_body


def test_the_op_that_runs_a_function():
  with tf.Graph().as_default():
    graphs = []
    result = tf.function(
        lambda: graphs.append(tf1.get_default_graph()) or tf.ones([]))()
    call = _tf_internals.call_of(graphs[0])
    assert call.outputs[0].shape == result.shape
    assert call.graph is result.graph


def test_a_switch_hands_a_value_into_a_branch_of_control_flow_v1(behavior):
  with tf.Graph().as_default() as graph:
    outside = tf.constant(1.0)
    tf.cond(tf1.placeholder(tf.bool, []), lambda: outside + 1.0, lambda: 2.0)
    is_any = any(map(_tf_internals.is_switch, graph.get_operations()))
  assert is_any == (behavior == 'v1')
