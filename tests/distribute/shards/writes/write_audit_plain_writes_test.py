# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of towers to variables from outside, or by ops that take a handle.

The forms and what they are given are those of batch_values_test.py.
"""

import time

import pytest
import tensorflow as tf

from tests.distribute.shards.writes import batch_values_test as forms

tf1 = tf.compat.v1
TOWERS = ('replicate_model_fn', 'TowerStrategy', 'cross_shard',
          'ShardedTPUEstimator')
ONE_MODEL = ('replicate_model_fn', 'TowerStrategy')
X = forms.FOUR


def _train(form, update, by_hand=False, make_steps=False):
  """Returns a variable from outside, and the step, after two steps."""
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=3.0)
    loss = tf.reduce_mean(w * features)
    train_op = tf.group(
        tf1.train.GradientDescentOptimizer(0.0).minimize(loss),
        update(outside, features))
    return train_op if by_hand else tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op)

  with tf.Graph().as_default(), tf1.Session() as session:
    outside = (tf1.train.create_global_step() if make_steps else
               tf1.get_variable('outside', initializer=0.0, trainable=False))
    rows = tf1.placeholder(tf.float32, [None])
    train_op = forms.FORMS[form](model_fn, rows, False)
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    for _ in range(2):
      session.run(train_op, {rows: X})
    return session.run(outside)


def _again(v, x):
  with tf.control_dependencies([tf1.assign(v, tf.reduce_mean(x))]):
    return v.assign_add(tf.identity(v.read_value()))


def _loop(fn):
  def body(i):
    with tf.control_dependencies([fn()]):
      return [i + 1]
  return tf.while_loop(lambda i: i < 3, body, [0])[0]


def _cond(v, fn):
  return tf.cond(v.read_value() > -1.0, lambda: tf.group(fn()), tf.no_op)


UPDATES = {
    'one': (lambda v, x: v.assign_add(1.0), 2.0),
    'sum': (lambda v, x: tf1.assign_add(v, tf.reduce_sum(x)), 2 * X.sum()),
    'mean': (lambda v, x: v.assign_sub(tf.reduce_mean(x)), -2 * X.mean()),
    'assigned': (lambda v, x: v.assign(tf.reduce_sum(x)), X.sum()),
    'next': (lambda v, x: v.assign(v + 1.0), 2.0),
    'decay': (lambda v, x: tf1.assign(v, v * 0.9 + tf.reduce_mean(x) * 0.1),
              0.19 * X.mean()),
    'again': (_again, 2 * X.mean()),
}


@pytest.mark.parametrize('form', ('one_device', *TOWERS))
@pytest.mark.parametrize('update', UPDATES)
def test_what_is_written_from_outside_is_what_one_device_writes(
    behavior, form, update):
  fn, expected = UPDATES[update]
  assert _train(form, fn) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize('update', UPDATES)
def test_it_is_written_once_where_all_towers_run(behavior, update):
  fn, expected = UPDATES[update]
  assert _train('TowerStrategy', fn, True) == pytest.approx(expected, rel=1e-5)


def _later(x):
  time.sleep(float(x.max()) / 100)


@pytest.mark.parametrize('write', [
    lambda v: v.assign_add(1.0), lambda v: v.assign(7.0),
    lambda v: v.assign(v.read_value() + 1.0),
    lambda v: tf.raw_ops.AssignAddVariableOp(resource=v.handle, value=1.0),
    lambda v: tf.cond(v.read_value() > -1.0, lambda: tf.group(
        v.assign_add(1.0)), tf.no_op)])
def test_a_write_waits_for_the_reads_of_all_shards(behavior, write):
  found = []

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=3.0)
    loss = tf.reduce_mean(w * features)
    train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(loss)
    with tf.control_dependencies([tf.numpy_function(_later, [features], [])]):
      found.append(tf.identity(outside.read_value()))
    with tf.control_dependencies([found[-1]]):
      written = write(outside)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(train_op, written))

  with tf.Graph().as_default(), tf1.Session() as session:
    outside = tf1.get_variable(
        'outside', initializer=0.0, trainable=False, use_resource=True)
    train_op = forms.FORMS['cross_shard'](model_fn, tf.constant(X), True)
    session.run(tf1.global_variables_initializer())
    _, *before = session.run([train_op, *found])
    assert before == [0.0, 0.0]
    assert session.run(outside) > 0


@pytest.mark.parametrize('update', [
    lambda v, x: tf1.assign_add(v, 1), lambda v, x: v.assign(v + 1),
    lambda v, x: tf.cond(v.read_value() > -1, lambda: tf.group(
        v.assign_add(1)), tf.no_op)])
@pytest.mark.parametrize('form', TOWERS)
def test_a_model_may_advance_the_step(behavior, form, update):
  assert _train(form, update, make_steps=True) == 2


def test_what_is_the_same_may_be_written_in_a_branch(behavior):
  def update(v, x):
    del x
    return _cond(v, lambda: v.assign_add(1.0))

  for form in 'replicate_model_fn', 'TowerStrategy':
    assert _train(form, update) == 2.0


@pytest.mark.parametrize('update', [
    lambda v, x: _cond(v, lambda: v.assign_add(tf.reduce_sum(x))),
    lambda v, x: tf.cond(tf.reduce_sum(x) > 9.0, lambda: tf.group(
        v.assign_add(1.0)), tf.no_op),
    lambda v, x: _loop(lambda: v.assign_add(1.0).op if hasattr(
        v, 'handle') else v.assign_add(1.0)),
    lambda v, x: v.assign(tf.reduce_max(x)),
])
@pytest.mark.parametrize('form', ONE_MODEL)
def test_one_model_writes_what_one_device_writes(behavior, form, update):
  assert _train(form, update, form == 'TowerStrategy') == _train(
      'one_device', update)


@pytest.mark.parametrize('form', ONE_MODEL)
def test_functions_that_scatter_do_what_one_device_does(behavior, form):
  def update(v, x):
    return tf1.scatter_add(v, [0], x[-1:])

  found = forms._train(form, {'v': update}, {
      'in': lambda name: tf1.get_variable(
          name, initializer=[0.0], use_resource=True)}, X, False)
  assert found == {'in/v': [[2 * X[-1]]]}


@pytest.mark.parametrize('form', ('TowerStrategy',))
def test_ops_that_take_the_handle_write_what_one_device_writes(behavior, form):
  def raw(name, reduce):
    op = getattr(tf.raw_ops, name)
    return lambda v, x: op(resource=v.handle, value=reduce(x))

  found = forms._train(form, {
      'one': raw('AssignAddVariableOp', lambda x: tf.constant(1.0)),
      'rows': raw('AssignAddVariableOp', forms._rows),
      'mean': raw('AssignSubVariableOp', tf.reduce_mean),
      'sum': raw('AssignVariableOp', tf.reduce_sum),
  }, {'v': lambda name: tf1.get_variable(
      name, initializer=0.0, trainable=False)}, X, False)
  assert found == {
      'v/one': [2.0], 'v/rows': [8.0], 'v/mean': [-2 * X.mean()],
      'v/sum': [X.sum()]}


def _metric(name):
  return tf1.get_variable(
      name, initializer=0.0, trainable=False, use_resource=True,
      collections=[forms.KEYS.LOCAL_VARIABLES, forms.KEYS.METRIC_VARIABLES])


def _call(v, fn):
  @tf.function
  def call():
    v.assign_add(fn())
    return tf.constant(0)
  return call()


def _add(v, value):
  return v.assign_add(value, read_value=False)


INSIDE = {
    'branch': lambda v, x: _cond(v, lambda: _add(v, tf.reduce_sum(x))),
    'loop': lambda v, x: _loop(lambda: _add(v, tf.reduce_sum(x))),
    'sum in a call': lambda v, x: _call(v, lambda: tf.reduce_sum(x)),
    'count': lambda v, x: _loop(lambda: _add(v, 1.0)),
    'mean': lambda v, x: _cond(v, lambda: _add(v, tf.reduce_mean(x))),
    'assigned': lambda v, x: _cond(v, lambda: v.assign(tf.reduce_mean(x))),
    'call': lambda v, x: _call(v, lambda: 1.0),
    'condition': lambda v, x: tf.cond(
        tf.reduce_max(x) > 5.0, lambda: tf.group(_add(v, tf.reduce_sum(x))),
        tf.no_op),
}


@pytest.mark.parametrize('form', ONE_MODEL)
@pytest.mark.parametrize('name', INSIDE)
def test_a_metric_is_updated_inside_as_on_one_device(behavior, form, name):
  found, expected = (forms._train(each, {'v': INSIDE[name]}, {
      'metric': _metric}, X, False) for each in (form, 'one_device'))
  assert found == expected


def _insert(x):
  table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
  return table.insert(tf.cast(x, tf.int64), x)


def _enqueue(x):
  return tf.queue.FIFOQueue(8, [tf.float32], [[]]).enqueue_many([x])


@pytest.mark.parametrize('form', forms.SHARDS)
@pytest.mark.parametrize('fill', (_insert, _enqueue))
def test_tables_and_queues_of_each_tower_are_refused(behavior, form, fill):
  with pytest.raises(RuntimeError, match='must not fill tables or queues.*'
                     'Keep the rows in a variable'):
    forms._train(form, {'v': lambda v, x: fill(x)}, {'in': _metric}, X, False)
