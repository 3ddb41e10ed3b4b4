# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a graph whose row-wise ops are made again in towers."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute.towers import split_graph
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

_X = np.float32([[1, 2], [3, 5], [7, 1]])


def _split(x, devices=('/cpu:0', '/cpu:1'), batch_norm='sync', rows=(2, 1)):
  """Returns a split of three rows over two towers."""
  begins = [sum(rows[:tower]) for tower in range(len(rows))]
  return split_graph.SplitGraph(batch_parts.DividedBatch(
      x, [x], [], None, lambda: (begins, rows, ())), devices, batch_norm)


def _take_gradients(split):
  _tf_internals.gradients_of_graph_through(
      tf1.get_default_graph(), split.gradients)


def test_what_is_computed_once_reads_the_rows_of_all_towers(behavior):
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    x = tf1.placeholder_with_default(_X, [None, 2])
    split = _split(x)
    with tf1.device('/cpu:0'):
      squares = tf.square(x, name='squares')
      total = tf.reduce_sum(squares, name='total')
    split.update()
    assert total.op.inputs[0].op.type == 'ConcatV2'
    for tower, rows in enumerate((_X[:2], _X[2:])):
      own = graph.get_tensor_by_name(f'tower_{tower}/squares:0')
      np.testing.assert_array_equal(session.run(own), rows ** 2)
      assert own.device.endswith(f'CPU:{tower}')
    np.testing.assert_array_equal(session.run(split.whole(squares)), _X ** 2)
    assert session.run('total:0') == np.sum(_X ** 2)


def test_gradients_by_variables_and_rows_go_through_the_towers(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(_X, [None, 2])
    w = tf1.get_variable('w', initializer=[[1.], [2.]])
    split = _split(x)
    _take_gradients(split)
    y = x @ w
    loss = tf.reduce_max(y) * tf.reduce_sum(y)
    of_w, of_x, of_y = tf.gradients(loss, [w, x, y])
    # Of second order: sum of squares of the gradient of a quadratic form.
    second, = tf.gradients(tf.reduce_sum(of_x ** 2), w)
    session.run(tf1.global_variables_initializer())
    found = session.run([of_w, of_x, of_y, second])
  y = _X @ [1, 2]
  by_y = y.max() + y.sum() * (y == y.max())
  np.testing.assert_allclose(found[0][:, 0], by_y @ _X)
  np.testing.assert_allclose(found[1], by_y[:, None] * [[1, 2]])
  np.testing.assert_allclose(found[2][:, 0], by_y)
  best = (y == y.max()).astype(float)
  expected = 2 * (by_y ** 2).sum() * np.array([1, 2]) + 2 * 5 * by_y @ (
      _X[1] + best[:, None] * _X.sum(0))
  np.testing.assert_allclose(found[3][:, 0], expected)


def test_ops_of_a_program_may_have_any_names():
  names = []
  for _ in range(2):  # The second program takes the names that we gave.
    with tf.Graph().as_default() as graph, tf1.Session() as session:
      x = tf1.placeholder_with_default(_X, [None, 2])
      w = tf1.get_variable('w', initializer=[[1.], [2.]], use_resource=True)
      split = _split(x)
      _take_gradients(split)
      for name in names:
        x = tf.negative(tf.negative(x), name)
      loss = tf.reduce_max(x @ w) * tf.reduce_sum(x @ w)
      of_w, = tf.gradients(loss, w)
      split.update()
      session.run(w.initializer)
      y = _X @ [[1], [2]]
      by_y = y.max() + y.sum() * (y == y.max())
      np.testing.assert_allclose(session.run(of_w), _X.T @ by_y)
      names = [op.name.removeprefix('tower_0/')
               for op in graph.get_operations() if 'tower_0/' in op.name]
  assert names


def test_the_graph_is_linear_in_towers():
  sizes = []
  for count in (2, 4, 8):
    with tf.Graph().as_default() as graph:
      x = tf1.placeholder(tf.float32, [None, 2])
      w = tf1.get_variable('w', [2, 2])
      split = _split(x, ['/cpu:0'] * count, rows=[1] * count)
      _take_gradients(split)
      for _ in range(5):
        x = tf.tanh(x @ w)
      tf.gradients(tf.reduce_mean(x), w)
      sizes.append(len(graph.get_operations()))
  assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def _all_before(op):
  found, pending = set(), [op]
  while pending:
    new = pending.pop()
    if new not in found:
      found.add(new)
      pending += [t.op for t in new.inputs] + new.control_inputs
  return found


@pytest.mark.parametrize('use_resource', [True, False])
@pytest.mark.parametrize('reads', ['all', 'rows'])
def test_a_fetched_loss_is_that_before_the_update(reads, use_resource):
  """The gradient of a linear loss needs no value of the variable."""
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.int32, [3])
    split = _split(x)
    _take_gradients(split)
    w = tf1.get_variable('w', [4, 2], use_resource=use_resource)
    rows = tf.gather(w, x) if reads == 'rows' else (
        tf.matmul(tf.one_hot(x, 4), w))
    loss = tf.reduce_sum(rows) * tf.constant(0.5)
    (gradient, _), = tf1.train.GradientDescentOptimizer(
        0.1).compute_gradients(loss, [w])
    before = _all_before(tf.convert_to_tensor(gradient).op)
    if use_resource and reads == 'all':
      assert 'ReadVariableOp' in {op.type for op in before}
    else:
      for tower in range(2):
        assert any(op.name.startswith(f'tower_{tower}/{rows.op.name}')
                   for op in before)


def test_a_gradient_waits_for_no_update_that_one_device_leaves_out():
  """Only the loss as a number waits for it, and that is not fetched."""
  with tf.Graph().as_default() as graph:
    split = _split(tf1.placeholder(tf.float32, [3, 2], name='x'))
    _take_gradients(split)
    w = tf1.get_variable('w', [2, 1], use_resource=True)
    loss = tf.reduce_sum(tf.matmul(graph.get_tensor_by_name('x:0'), w))
    with tf.control_dependencies([tf.no_op('update')]):
      loss = tf.identity(loss)
    (gradient, _), = tf1.train.GradientDescentOptimizer(
        0.1).compute_gradients(loss, [w])
    assert graph.get_operation_by_name('update') not in (
        _all_before(gradient.op))


def test_what_waits_for_a_split_op_waits_for_each_tower():
  with tf.Graph().as_default() as graph:
    x = tf1.placeholder(tf.float32, [None, 2])
    split = _split(x)
    y = tf.exp(x, name='y')
    with tf.control_dependencies([y]):
      after = tf.no_op()
    split.update()
    assert {op.name for op in after.control_inputs} == {
        'tower_0/y', 'tower_1/y'}
    assert graph.get_operation_by_name('tower_1/y').inputs[0] is not x


def test_moments_are_weighed(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(_X[:, None, None], [None, 1, 1, 2])
    split = _split(x, batch_norm='mean')
    y, mean, _ = tf1.nn.fused_batch_norm(
        x, tf.ones([2]), tf.zeros([2]), epsilon=1.)
    split.update()
    found, mean = session.run([split.whole(y), split.whole(mean)])
  np.testing.assert_allclose(mean, _X.mean(0), rtol=1e-6)
  # Towers have the means (2, 3.5) and (7, 1).
  np.testing.assert_allclose(found[:2, 0, 0, 0], [-.5 ** .5, .5 ** .5])
  np.testing.assert_allclose(found[2], 0)


@pytest.mark.parametrize('use', [
    lambda x, zeros: tf.raw_ops.GRUBlockCell(
        x=x, h_prev=zeros, w_ru=tf.ones([4, 4]), w_c=tf.ones([4, 2]),
        b_ru=tf.ones([4]), b_c=tf.zeros([2])).h,
    lambda x, zeros: tf.raw_ops.LSTMBlockCell(
        x=x, cs_prev=zeros, h_prev=zeros, w=tf.ones([4, 8]), b=tf.ones([8]),
        wci=tf.ones([2]), wcf=tf.ones([2]), wco=tf.ones([2])).h,
    lambda x, zeros: tf.raw_ops.ClipByValue(
        t=x, clip_value_min=zeros, clip_value_max=zeros + 2)])
def test_a_tower_has_rows_of_its_own_in_each_input(use):
  found = []
  for is_split in (False, True):
    with tf.Graph().as_default(), tf1.Session() as session:
      x = tf1.placeholder_with_default(_X, [None, 2])
      split = _split(x)
      # An op that is computed once.
      y = use(x, tf.zeros(tf.shape(x)))
      if is_split:
        split.update()
      found.append(session.run(split.whole(y) if is_split else y))
  np.testing.assert_allclose(*found, rtol=1e-6)


def test_an_original_reads_a_variable_when_its_towers_do():
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.int32, [None])
    table = tf1.get_variable('table', [9, 2], use_resource=True)
    split = _split(x)
    rows = tf.gather(table, x)
    hidden = tf.exp(rows)
    tf.reduce_sum(hidden)
    split.update()
    assert rows.op not in graph_order.upstream([hidden.op])


@pytest.mark.parametrize('value', (3, 'name', None))
def test_what_is_no_tensor_of_the_graph_is_left_alone(value):
  with tf.Graph().as_default():
    split = _split(tf1.placeholder(tf.float32, [None, 2]))
    assert split.whole(value) is value


@tf.custom_gradient
def _custom(h):
  """Returns h * sum(h), with twice its gradient."""
  y = h * tf.reduce_sum(h)
  return y, lambda dy: 2.0 * tf.gradients(y, h, dy)[0]


def _registered(h):
  y = h * tf.reduce_sum(h)
  name = f'Twice{id(y)}'

  @tf.RegisterGradient(name)
  def _twice(op, dy):
    del op
    return 2.0 * tf.gradients(y, h, dy)[0]

  with h.graph.gradient_override_map({'Identity': name}):
    return tf.identity(h) * tf.stop_gradient(tf.reduce_sum(h))


@pytest.mark.parametrize('layer, factor', [(_custom, 1), (_registered, 27)])
def test_a_gradient_function_takes_gradients_through_all_rows(
    behavior, layer, factor):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(_X, [None, 2])
    w = tf1.get_variable('w', initializer=[[1.], [2.]])
    split = _split(x)
    _take_gradients(split)
    h = x @ w  # 5, 13, 9
    gradients = tf.gradients(tf.reduce_sum(layer(h)), [w, h])
    session.run(tf1.global_variables_initializer())
    of_w, of_h = session.run(gradients)
  # By each row of h: 2 * (27 + 27).
  np.testing.assert_allclose(of_h, [[factor * 108.]] * 3)
  np.testing.assert_allclose(of_w, factor * 108. * _X.sum(0)[:, np.newaxis])


def test_gradients_of_composite_tensors(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(_X, [None, 2])
    split = _split(x)
    _take_gradients(split)
    h = tf.square(x)
    ragged = tf.RaggedTensor.from_row_splits(
        3.0 * h * tf.reduce_sum(h), [0, 2, 3])
    found = session.run(tf.gradients([ragged], [h]))
  # 3 * sum{i} h[i] * S by h[j]: 3 * (S + S).
  np.testing.assert_allclose(found[0], np.full([3, 2], 6 * np.sum(_X ** 2)))
