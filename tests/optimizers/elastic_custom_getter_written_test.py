# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trainable variables that a program writes without the elastic optimizer."""

from __future__ import annotations

import contextlib

import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs
from tfplugin.distribute import per_graph

tf1 = tf.compat.v1

Getter = elastic_graphs.Getter
_optimizer = elastic_graphs.make_optimizer
_center = elastic_graphs.center


def _variable(getter, name):
  return elastic_graphs.variable(getter, name, 0.0, use_resource=True)


@contextlib.contextmanager
def _started(optimizer, how):
  """Yields a session with the hook, or one of a program without it."""
  if how == 'hook':
    with tf1.train.MonitoredSession(
        hooks=[optimizer.make_session_run_hook(True, 0)]) as session:
      yield session
    return
  if how == 'saver':
    optimizer.swapping_saver()
  with elastic_graphs.session(optimizer) as session:
    session.run([v.initializer for v in optimizer.variables()])
    yield session


def _expected(order, period, rate=0.25, steps=4):
  """Returns copy and centre after each step that writes copy + 1."""
  copy, center, result = 0.0, 0.0, []
  for step in range(1, steps + 1):
    for part in order:
      if part == 'write':
        copy += 1
      elif step % period == 0:
        difference = rate * (copy - center)
        copy, center = copy - difference, center + difference
    result.append([copy, center])
  return result


def _bare(variable):
  return tf1.train.GradientDescentOptimizer(1.0).minimize(
      -variable.read_value(), var_list=[variable])


def _assignment(variable):
  return variable.assign(variable.read_value() + 1).op


_SETTINGS = [
    {}, {'communication_period': 2}, {'on_nonfinite': 'drop'},
    {'update_order': 'elastic_first'}, {'rho': 0.5, 'communication_period': 2}]


@pytest.mark.parametrize('write', [_bare, _assignment])
@pytest.mark.parametrize('how', ['hook', 'saver', 'init'])
@pytest.mark.parametrize('settings', _SETTINGS[:2], ids=str)
def test_a_write_before_the_call(behavior, write, how, settings):
  """Wide and deep, where only the deep optimizer is wrapped."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    deep, wide = _variable(getter, 'deep'), _variable(getter, 'wide')
    optimizer = _optimizer(getter, moving_rate=0.25, **settings)
    with tf1.control_dependencies([write(wide)]):
      gradient = tf.constant(-1.0)
    train = optimizer.apply_gradients([(gradient, deep)])
    values = [[v.read_value(), _center(getter, v).read_value()]
              for v in (deep, wide)]
    with _started(optimizer, how) as session:
      for expected in _expected(('write', 'exchange'),
                                settings.get('communication_period', 1)):
        session.run(train)
        assert session.run(values) == [expected, expected]


@pytest.mark.parametrize('settings', _SETTINGS, ids=str)
def test_a_write_after_the_call(behavior, settings):
  """A target network that is made as a trainable one."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    q, target = _variable(getter, 'q'), _variable(getter, 'target')
    optimizer = _optimizer(getter, moving_rate=0.25, **settings)
    with tf1.control_dependencies([
        optimizer.minimize(-q.read_value(), None, [q])]):
      train = _assignment(target)
    values = [target.read_value(), _center(getter, target).read_value()]
    with _started(optimizer, 'hook') as session:
      for expected in _expected(('exchange', 'write'),
                                settings.get('communication_period', 1)):
        session.run(train)
        assert session.run(values) == expected


@pytest.mark.parametrize('settings', [
    {'overlap': True}, {'exchange_dtype': 'int8'},
    {'exchange_dtype': 'float16'}, {'sparse_exchange': True}], ids=str)
def test_each_kind_of_exchange_reaches_the_centre(behavior, settings):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    q, target = _variable(getter, 'q'), _variable(getter, 'target')
    optimizer = _optimizer(getter, moving_rate=0.5, **settings)
    with tf1.control_dependencies([target.assign(4.0 + 0 * q.read_value()).op]):
      gradient = tf.constant(0.0)
    train = optimizer.apply_gradients([(gradient, q)])
    center = _center(getter, target).read_value()
    with _started(optimizer, 'hook') as session:
      for _ in range(20):
        session.run(train)
      # Half of the distance from 4 is left after each exchange.
      assert abs(session.run(center) - 4) < 0.01


def test_the_centre_is_saved(behavior, tmp_path):
  with tf.Graph().as_default():
    getter = Getter('')
    q, target = _variable(getter, 'q'), _variable(getter, 'target')
    optimizer = _optimizer(getter, moving_rate=0.5)
    with tf1.control_dependencies([
        optimizer.minimize(-q.read_value(), None, [q])]):
      train = _assignment(target)
    saver = optimizer.swapping_saver()
    with _started(optimizer, 'saver') as session:
      for _ in range(3):
        session.run(train)
      path = saver.save(session, str(tmp_path / 'c'))
  expected = _expected(('exchange', 'write'), 1, 0.5, 3)[-1][1]
  assert tf.train.load_checkpoint(path).get_tensor('target') == expected


def test_of_several_calls_the_last_one_exchanges(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a, b, other = (_variable(getter, name) for name in ('a', 'b', 'other'))
    optimizers = [_optimizer(getter, moving_rate=0.25) for _ in range(2)]
    with tf1.control_dependencies([_assignment(other)]):
      gradient = tf.constant(-1.0)
    trains = [optimizers[0].apply_gradients([(gradient, a)]),
              optimizers[1].apply_gradients([(gradient, b)])]
    values = [other.read_value(), _center(getter, other).read_value()]
    with tf1.train.MonitoredSession(hooks=[
        each.make_session_run_hook(True, 0) for each in optimizers]) as session:
      session.run(trains[0])
      assert session.run(values) == [1, 0]
      session.run(trains)
      assert session.run(values) == [1.5, 0.5]
      session.run(trains[1])
      assert session.run(values) == [2, 1]


def test_a_later_call_takes_turns(behavior):
  """The saver is made before the call that trains the variable."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a, b = _variable(getter, 'a'), _variable(getter, 'b')
    optimizer = _optimizer(getter, moving_rate=0.25)
    with tf1.control_dependencies([_bare(b)]):
      gradient = tf.constant(-1.0)
    trains = [optimizer.apply_gradients([(gradient, a)])]
    optimizer.swapping_saver()
    with tf1.control_dependencies(trains):
      trains.append(optimizer.minimize(-b.read_value(), None, [b]))
    values = [b.read_value(), _center(getter, b).read_value()]
    with _started(optimizer, 'hook') as session:
      session.run(trains)
      # 1, a quarter of 1, + 1; exchanged once.
      assert session.run(values) == [1.75, 0.25]


def test_no_write_no_exchange(behavior):
  """Pretrained layers that are not trained send no messages."""
  del behavior
  with tf.Graph().as_default() as graph:
    getter = Getter('')
    a = _variable(getter, 'a')
    _variable(getter, 'frozen')
    optimizer = _optimizer(getter)
    train = optimizer.minimize(-a.read_value(), None, [a])
    tf1.train.Saver([v for v in tf1.local_variables() if v.trainable])
    optimizer.get_init_op(0)
    with _started(optimizer, 'hook') as session:
      session.run(train)
    assert set(per_graph.of(graph).copies) == {'global_center_variable/a'}


def _in_branch(optimizer, loss, variable):
  return tf.cond(tf.constant(True), lambda: tf.group(
      optimizer.minimize(loss(), None, [variable])), tf.no_op)


def _in_loop(optimizer, loss, variable):
  def body(i):
    with tf1.control_dependencies([
        optimizer.minimize(loss(), None, [variable])]):
      return i + 1
  return tf.while_loop(lambda i: i < 2, body, [0], parallel_iterations=1)


@pytest.mark.parametrize('apply', [_in_branch, _in_loop])
def test_a_call_that_gets_no_variable_raises(behavior, apply, monkeypatch):
  warnings = []
  monkeypatch.setattr(tf1.logging, 'warning',
                      lambda form, *args: warnings.append(form % args))
  with tf.Graph().as_default():
    getter = Getter('')
    a, other = _variable(getter, 'a'), _variable(getter, 'other')
    optimizer = _optimizer(getter)
    apply(optimizer, lambda: -a.read_value(), a)
    optimizer.get_init_op(0)
    assert not warnings
    other.assign(tf1.placeholder(tf.float32, []))
    optimizer.get_init_op(0)
    assert len(warnings) == 1 and "['other:0']" in warnings[0]
    _assignment(other)
    hook = optimizer.make_session_run_hook(True, 0)
    with pytest.raises(RuntimeError, match=(
        r"Received: \['other:0'\].*`trainable=False`")):
      hook.begin()
