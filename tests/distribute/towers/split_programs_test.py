# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs whose numbers were a tower's own: they are one device's."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import replicate
from tfplugin.testing import one_device

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:`tf.layers', 'ignore:.*RNNCell')

_EVAL, _PREDICT, _TRAIN = 'eval', 'infer', 'train'
_RANDOM = np.random.RandomState(0)
_X = _RANDOM.randn(28, 4).astype(np.float32)
_Y = (_X[:, :1] > 0).astype(np.float32)


def _input_fn(static=False):
  return lambda: tf1.data.Dataset.from_tensor_slices((_X, _Y)).batch(
      7, drop_remainder=static).repeat()


def _model_fn(features, labels, mode, params):
  """A layer, and what `params` makes of it: a loss, updates, and outputs."""
  logits = tf1.layers.dense(
      features, 1, kernel_initializer=tf1.initializers.random_normal(seed=1))
  row = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
  loss, updates, outputs = params['use'](features, logits, row)
  metrics = {key: tf1.metrics.mean(value) for key, value in outputs.items()
             if value.shape.rank == 0}
  predictions = {key: value for key, value in outputs.items()
                 if value.shape.rank != 0}
  train_op = None
  if mode == _TRAIN:
    train_op = tf.group(updates, tf1.train.GradientDescentOptimizer(
        .5).minimize(loss, tf1.train.get_global_step()))
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op, eval_metric_ops=metrics,
      predictions=predictions or logits)


def _assert_equal(use, static=False, **kwargs):
  one_device.assert_equals_one_device(
      _model_fn, _input_fn(static), [f'/cpu:{i}' for i in range(3)],
      params={'use': use}, **kwargs)


def _variable(shape=(), **kwargs):
  return tf1.get_variable(
      'state', shape, initializer=tf1.initializers.ones(), trainable=False,
      **kwargs)


def _count(tensor, axis=0):
  return tf.cast(tf.shape(tensor)[axis], tf.float32)


def _rnn(x):
  with tf1.variable_scope(
      'rnn', initializer=tf1.initializers.ones(), reuse=tf1.AUTO_REUSE):
    return tf1.nn.dynamic_rnn(tf1.nn.rnn_cell.BasicRNNCell(2), tf.stack(
        [x, x], 1), dtype=tf.float32)[0]


_COUNTED = {  # Line 0.
    'expanded': lambda x: _count(tf.expand_dims(x, 0), 1),
    'transposed': lambda x: _count(tf.transpose(x), 1),
    'reversed': lambda x: _count(tf.reverse(x, [0])),
    'convolved': lambda x: _count(tf.nn.conv1d(
        x[:, :, None], tf.ones([2, 1, 1]), 1, 'SAME')),
    'rnn': lambda x: _count(_rnn(x)),
    'embedded': lambda x: _count(tf.nn.embedding_lookup(
        tf.ones([3, 2]), tf.cast(x > 0, tf.int32))),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize('name', _COUNTED)
def test_rows_are_counted_behind_every_op(behavior, name):
  _assert_equal(lambda x, logits, row: (
      tf.reduce_sum(row) / _COUNTED[name](x), (),
      {'mask': tf.zeros([tf.shape(x)[0]])}))


@pytest.mark.parametrize('loss', (  # Line 0b.
    lambda row, n: tf.reduce_sum(row) * (1. / n),
    lambda row, n: tf.reduce_sum(row / n),
    lambda row, n: tf.reduce_sum(row) / n,
    lambda row, n: tf1.losses.compute_weighted_loss(
        row, 1. / n, reduction=tf1.losses.Reduction.SUM)))
def test_a_static_number_of_rows_is_that_of_the_batch(behavior, loss):
  _assert_equal(lambda x, logits, row: (
      loss(row, int(x.shape[0])), (), {'loss': loss(row, int(x.shape[0]))}),
                static=True)


def test_losses_built_row_by_row(behavior):  # Line 1.
  def split(x, logits, row):
    rows = tf.unstack(tf.square(logits + x), 7)
    return tf.add_n([tf.reduce_mean(r) for r in rows]) / 7, (), {}
  _assert_equal(split, static=True)
  _assert_equal(lambda x, logits, row: (
      tf.reduce_mean(tf.map_fn(tf.reduce_sum, x * logits)), (), {}))


@pytest.mark.parametrize('value', (  # Lines 4 and 5.
    lambda x: tf.reduce_sum(x), lambda x: tf.reduce_max(x),
    lambda x: tf.math.reduce_std(x),
    lambda x: tf.where(tf.reduce_mean(x) > 0, tf.reduce_sum(x), -3.),
    lambda x: tf.cond(tf.reduce_max(x) > .1, lambda: tf.reduce_min(x),
                      lambda: tf.reduce_sum(x)),
    lambda x: tf.cast(tf.shape(x)[0], tf.float32)))
def test_what_a_step_writes(behavior, value):
  def use(x, logits, row):
    state = _variable()
    from_batch = value(logits)
    return tf.reduce_mean(row), (
        tf.keras.backend.moving_average_update(state, from_batch, .5),
        tf1.get_variable('last', [], trainable=False).assign(from_batch)), {}
  _assert_equal(use, modes=[_TRAIN])


def test_a_code_book(behavior):  # Line 5.
  def use(x, logits, row):
    state = _variable([3])
    ids = tf.cast(tf.abs(x[:, 0]), tf.int32) % 3
    counts = tf.reduce_sum(tf.one_hot(ids, 3), 0)
    return tf.reduce_mean(row), state.assign(.9 * state + .1 * counts), {}
  _assert_equal(use, modes=[_TRAIN])


def test_gradients_by_rows(behavior):  # Line 6.
  def use(x, logits, row):
    gradient, = tf.gradients(row, x)
    norm = tf.norm(gradient, axis=1)
    hidden, = tf.gradients(tf.reduce_sum(row), logits)
    return (tf.reduce_mean(row) + tf.reduce_mean(tf.square(norm - 1)), (),
            {'norm': norm, 'hidden': hidden})
  _assert_equal(use)


def test_an_evaluator_in_python_sees_all_rows(behavior):  # Line 7.
  seen = []
  def use(x, logits, row):
    count = tf1.py_func(
        lambda values: seen.append(len(values)) or np.float32(len(values)),
        [logits], tf.float32)
    count.set_shape([])
    return tf.reduce_mean(row), (), {'count': count}
  _assert_equal(use)
  assert set(seen) == {7}


@pytest.mark.parametrize('value', (  # Line 9b.
    lambda logits: tf.reduce_sum(logits), lambda logits: tf.reduce_max(logits),
    lambda logits: tf.cast(tf.shape(logits)[0], tf.float32),
    lambda logits: tf.reduce_mean(tf.boolean_mask(logits, logits > 0.)),
    lambda logits: tf.sqrt(tf.reduce_mean(tf.square(logits)))))
def test_metrics_of_numbers_of_a_batch(behavior, value):
  _assert_equal(lambda x, logits, row: (
      tf.reduce_mean(row), (), {'value': value(logits)}), modes=[_EVAL])


def test_predictions_in_which_rows_meet(behavior):  # Line 9c.
  _assert_equal(lambda x, logits, row: (tf.reduce_mean(row), (), {
      'number': tf.range(tf.shape(logits)[0]),
      'score': logits / tf.reduce_max(logits),
      'rank': tf.argsort(tf.argsort(logits[:, 0])),
      'softmax': tf.nn.softmax(logits, axis=0)}), modes=[_PREDICT])


def _train(use, fetch, devices=('/cpu:0', '/cpu:1'), feed=None, **kwargs):
  """Fetches tensors by name from a training step of a model."""
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    x, y = (tf1.placeholder_with_default(v[:7], [None, v.shape[1]])
            for v in (_X, _Y))
    spec = replicate.replicate_model_fn(_model_fn, devices=list(devices))(
        x, y, _TRAIN, {'use': use}, None)
    scaffold = tf1.train.Scaffold(**kwargs)
    with tf1.train.SingularMonitoredSession(scaffold=scaffold) as session:
      raw = session.raw_session()
      raw.run(spec.train_op)
      return raw.run(fetch, feed)


def test_tensors_that_a_hook_reads_by_name(behavior):  # Line 9d.
  def use(x, logits, row):
    tf.reduce_sum(x, name='total')
    return tf.reduce_mean(row, name='loss'), (), {}
  total, loss, rows = _train(use, ['total:0', 'loss:0', 'dense/BiasAdd:0'])
  assert total == pytest.approx(_X[:7].sum(), rel=1e-5)
  assert len(rows) == 7 and 0 < loss < 9


def test_dropout_draws_what_one_device_draws(behavior):  # Line 9e.
  def use(x, logits, row):
    kept = tf.nn.dropout(x, .5, seed=3)
    layer = tf.keras.layers.Dropout(.5, seed=4)(kept, training=True)
    drawn = tf.random.uniform(tf.shape(layer))
    return tf.reduce_mean(row * layer * drawn), (), {'kept': kept}
  _assert_equal(use)


def test_values_fed_through_an_init_fn(behavior):  # Line 11.
  fed = {}
  def use(x, logits, row):
    table = tf1.get_variable('table', [4, 3], trainable=False)
    fed['to'] = tf1.placeholder(tf.float32, [4, 3])
    fed['op'] = table.assign(fed['to'])
    return tf.reduce_mean(row), (), {}
  read = 'table/Read/ReadVariableOp:0' if (
      tf1.resource_variables_enabled()) else 'table/read:0'
  found = _train(use, read, init_fn=lambda _, session: session.run(
      fed['op'], {fed['to']: np.full([4, 3], 2)}))
  np.testing.assert_array_equal(found, np.full([4, 3], 2))


def test_a_number_fed_through_an_init_fn(behavior):  # Line 11.
  fed = {}
  def use(x, logits, row):
    fed['to'] = tf1.placeholder(tf.float32, [])
    fed['op'] = _variable(use_resource=True).assign(fed['to'])
    return tf.reduce_mean(row), (), {}
  assert _train(use, 'state/Read/ReadVariableOp:0', init_fn=(
      lambda _, session: session.run(fed['op'], {fed['to']: 5.}))) == 5.


def test_an_update_in_a_condition(behavior):  # Line 12.
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[1.]] * 4)
    loss = tf.reduce_mean(tf.square(features @ w - labels))
    optimizer = tf1.train.GradientDescentOptimizer(.1)
    pairs = optimizer.compute_gradients(loss)
    finite = tf.reduce_all(tf.math.is_finite(pairs[0][0]))
    step = tf1.train.get_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.cond(
        finite, lambda: optimizer.apply_gradients(pairs, step), tf.no_op))
  one_device.assert_equals_one_device(
      model_fn, _input_fn(), ['/cpu:0', '/cpu:1'], modes=[_TRAIN])


@pytest.mark.parametrize('name', ('scatter_add', 'scatter_sub',
                                  'scatter_update'))
def test_scatter_functions(behavior, name):  # Line 13: centre loss.
  def use(x, logits, row):
    centres = _variable([2, 4])
    ids = tf.constant([0, 1])
    values = tf.stack([tf.reduce_sum(x, 0), tf.reduce_max(x, 0)])
    return tf.reduce_mean(row), getattr(tf1, name)(centres, ids, values), {}
  _assert_equal(use, modes=[_TRAIN])


def test_names_of_what_the_model_saves(behavior):  # Line 14b.
  def use(x, logits, row):
    loss = tf.reduce_sum(row) * .5
    average = tf1.train.ExponentialMovingAverage(.9)
    return loss, average.apply([loss]), {}
  _assert_equal(use, modes=[_TRAIN])


def test_accumulators_of_gradients_are_made_once(behavior):  # Line 15.
  def use(x, logits, row):
    accumulator = tf1.ConditionalAccumulator(tf.float32, [])
    applied = accumulator.apply_grad(tf.reduce_max(x), 0)
    with tf.control_dependencies([applied]):
      tf.identity(accumulator.take_grad(1), name='taken')
    return tf.reduce_mean(row), (), {}
  assert _train(use, 'taken:0') == _X[:7].max()


def test_state_of_the_size_of_a_batch(behavior):  # Line 18.
  def use(x, logits, row):
    state = tf1.get_variable('state', [7, 1], trainable=False, initializer=(
        tf1.initializers.zeros()))
    loss = tf.reduce_mean(row + state)
    with tf.control_dependencies([loss]):
      return loss, state.assign(logits), {}
  _assert_equal(use, static=True, modes=[_TRAIN])
  _assert_equal(use, modes=[_TRAIN])


def test_a_variable_that_starts_with_an_output(behavior):  # Line 18.
  def use(x, logits, row):
    first = tf1.get_variable('first', trainable=False, use_resource=True,
                             initializer=tf.reduce_sum(tf.square(x)))
    return tf.reduce_mean(row) + first, (), {}
  assert _train(use, 'first/Read/ReadVariableOp:0') == pytest.approx(
      np.square(_X[:7]).sum(), rel=1e-5)


def test_static_shapes_are_split(behavior, caplog):
  def use(x, logits, row):
    wide = tf1.layers.dense(x[:, :, None], 2)
    up = tf1.layers.conv2d_transpose(wide[:, None], 1, [1, 2], [1, 2])
    return tf.reduce_mean(row) + tf.reduce_mean(tf.square(up)), (), {'up': up}
  _assert_equal(use, static=True)
  assert 'run once' not in caplog.text


def test_queues_and_tables_are_filled_once(behavior):
  def use(x, logits, row):
    queue = tf.queue.FIFOQueue(99, tf.float32, shapes=[])
    with tf.control_dependencies([queue.enqueue(tf.reduce_sum(x))]):
      size = tf.cast(queue.size(), tf.float32)
    return tf.reduce_mean(row), (), {'size': size}
  _assert_equal(use, modes=[_EVAL])


_SMALL = functools.partial(tf.cast, dtype=tf.float32)


def test_a_tape_in_a_graph(behavior):
  def use(x, logits, row):
    with tf.GradientTape() as tape:
      tape.watch(x)
      value = tf.reduce_sum(tf.square(x)) / _SMALL(tf.shape(x)[0])
    return tf.reduce_mean(row) + tf.reduce_mean(
        tape.gradient(value, x)), (), {}
  _assert_equal(use)
