# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging applied more than once, or under a condition."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

Getter = elastic_graphs.Getter
_optimizer = elastic_graphs.make_optimizer
_variable = elastic_graphs.variable
_session = elastic_graphs.session
_center = elastic_graphs.center


@pytest.mark.parametrize('together', [True, False])
def test_one_optimizer_applied_twice_communicates_both(behavior, together):
  """As in a GAN; with one counter for both, a period of 2 is never due."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    step = tf1.train.get_or_create_global_step()
    a, b = _variable(getter, 'a', 0.0), _variable(getter, 'b', 0.0)
    optimizer = _optimizer(getter, communication_period=2, moving_rate=0.5)
    trains = [optimizer.minimize(-a, step, [a]),
              optimizer.minimize(-b, None, [b])]
    with _session(optimizer) as session:
      session.run([v.initializer for v in optimizer.variables()])
      for _ in range(2):
        for fetch in [trains] if together else trains:
          session.run(fetch)
      # Two steps of 1, and half of the difference moves.
      for v in (a, b):
        assert session.run([v, _center(getter, v)]) == [1.0, 1.0]
      assert session.run(step) == 1
      assert [session.run(v) for v in optimizer.variables()] == [2, 2]


@pytest.mark.parametrize('num_optimizers', [1, 2])
def test_a_session_step_with_two_calls_exchanges_statistics_once(
    behavior, num_optimizers):
  with tf.Graph().as_default():
    getter = Getter('')
    a, b = _variable(getter, 'a', 0.0), _variable(getter, 'b', 0.0)
    with tf1.variable_scope('', custom_getter=getter):
      mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    update = mean.assign(tf1.placeholder_with_default(4.0, [])).op
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    optimizers = [_optimizer(getter, moving_rate=0.25)
                  for _ in range(num_optimizers)]
    with tf1.control_dependencies([update]):
      trains = [optimizers[0].minimize(-a, None, [a]),
                optimizers[-1].minimize(-b, None, [b])]
    with _session(optimizers[0]) as session:
      seen = []
      for fetches in (trains, trains[1:], trains[:1], trains):
        session.run(fetches)
        seen.append(session.run([mean, _center(getter, mean)]))
  # Each time the copy is 4, and a quarter of the difference moves.
  assert seen == [[3, 1], [3.25, 1.75], [3.4375, 2.3125],
                  [3.578125, 2.734375]]


def _two_calls(num_optimizers=1, is_ordered=True, **settings):
  """A variable, its centre, two calls that add 1 and 2, and a session."""
  getter = Getter('')
  w = _variable(getter, 'w', 0.0)
  optimizers = [_optimizer(getter, moving_rate=0.25, **settings)
                for _ in range(num_optimizers)]
  trains = [optimizers[0].minimize(-1.0 * w)]
  with tf1.control_dependencies(trains if is_ordered else []):
    trains.append(optimizers[-1].minimize(-2.0 * w))
  center = _center(getter, w)
  return w, center, trains, _session(optimizers[0])


@pytest.mark.parametrize('num_optimizers', [1, 2])
@pytest.mark.parametrize('settings, expected', [
    # 1, a quarter of 1, + 2; then 3.75, a quarter of 3.5, + 2.
    ({}, [[2.75, 0.25], [4.875, 1.125]]),
    # 3; then a quarter of 3, + 3.
    ({'update_order': 'elastic_first'}, [[3, 0], [5.25, 0.75]]),
    # 3; then 4, a quarter of 4, + 2.
    ({'communication_period': 2}, [[3, 0], [5, 1]]),
    ({'on_nonfinite': 'drop'}, [[2.75, 0.25], [4.875, 1.125]]),
], ids=str)
def test_a_session_step_with_two_calls_exchanges_a_variable_once(
    behavior, num_optimizers, settings, expected):
  del behavior
  with tf.Graph().as_default():
    w, center, trains, session = _two_calls(num_optimizers, **settings)
    for values in expected:
      session.run(trains)
      assert session.run([w, center]) == values


def test_two_calls_that_nobody_ordered_exchange_a_variable_once(behavior):
  del behavior
  with tf.Graph().as_default():
    w, center, trains, session = _two_calls(is_ordered=False)
    for _ in range(20):
      before, center_before = session.run([w, center])
      session.run(trains)
      after, center_after = session.run([w, center])
      # The other call may add its value before the exchange, or after it.
      assert center_after - center_before in [
          pytest.approx((before + added - center_before) / 4, rel=1e-4)
          for added in (1, 2, 3)]
      assert before + 3 + center_before == pytest.approx(after + center_after)


def test_calls_in_session_steps_of_their_own_exchange_in_each(behavior):
  del behavior
  with tf.Graph().as_default():
    w, center, trains, session = _two_calls(is_ordered=False)
    local = middle = 0.0
    for call in (0, 1, 0, 1, 1, 1, 0, 0):
      session.run(trains[call])
      local += 1 + call
      difference = (local - middle) / 4
      local, middle = local - difference, middle + difference
      assert session.run([w, center]) == pytest.approx([local, middle])


@pytest.mark.parametrize('period', [1, 2])
@pytest.mark.parametrize('calls_of_runs', [
    [(0,), (0, 1)], [(1,), (0, 1)], [(0,), (0,), (0, 1), (0, 1), (1,)],
], ids=str)
@pytest.mark.parametrize('is_ordered', [True, False])
def test_runs_of_one_call_and_of_both_exchange_once(
    behavior, is_ordered, calls_of_runs, period):
  """Both calls in every other run exchanged a variable twice in each."""
  del behavior
  with tf.Graph().as_default():
    w, center, trains, session = _two_calls(
        is_ordered=is_ordered, communication_period=period)
    steps = [0, 0]
    for calls in calls_of_runs * 4:
      before, center_before = session.run([w, center])
      session.run([trains[call] for call in calls])
      after, center_after = session.run([w, center])
      if is_ordered and 1 in calls:
        calls = (0, 1)
      for call in calls:
        steps[call] += 1
      added = sum(1 + call for call in calls)
      # A call may add its value before the exchange of another, or after it.
      expected = [(before + each - center_before) / 4
                  for each in ((1, 2, 3) if calls == (0, 1) else (added,))
                  ] if any(steps[call] % period == 0 for call in calls) else [0]
      moved = center_after - center_before
      assert moved in [pytest.approx(each, rel=1e-4) for each in expected]
      assert after + center_after == pytest.approx(
          before + center_before + added)


def test_three_calls_of_overlapping_variables_exchange_each_once(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a, b, c = (_variable(getter, name, 0.0) for name in 'abc')
    optimizer = _optimizer(getter, moving_rate=0.25)
    first = optimizer.minimize(-a - b, None, [a, b])
    with tf1.control_dependencies([first]):
      second = optimizer.minimize(-b - c, None, [b, c])
    with tf1.control_dependencies([second]):
      third = optimizer.minimize(-a - b - c, None, [a, b, c])
    with _session(optimizer) as session:
      session.run(third)
      # 1, then a quarter of 1 moves; then 1 for each later call.
      assert session.run([[v, _center(getter, v)] for v in (a, b, c)]) == [
          [1.75, 0.25], [2.75, 0.25], [1.75, 0.25]]


@pytest.mark.parametrize('outside', [True, False])
def test_calls_in_branches_exchange_a_variable_once(behavior, outside):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    w = _variable(getter, 'w', 0.0)
    optimizer = _optimizer(getter, moving_rate=0.25)
    should = [tf1.placeholder_with_default(True, []) for _ in range(2)]

    def train(value):
      with tf1.control_dependencies([
          optimizer.apply_gradients([(tf.constant(-value), w)])]):
        return tf.constant(True)

    op = (train(1.0) if outside else
          tf.cond(should[0], lambda: train(1.0), lambda: False))
    with tf1.control_dependencies([tf.identity(op)]):
      op = tf.cond(should[1], lambda: train(2.0), lambda: False)
    with _session(optimizer) as session:
      session.run(op)
      assert session.run([w, _center(getter, w)]) == [2.75, 0.25]
      session.run(op, {should[1]: False})  # 3.75, a quarter of 3.5.
      assert session.run([w, _center(getter, w)]) == [2.875, 1.125]


def test_the_second_call_of_a_run_leaves_the_view_of_the_centre(behavior):
  del behavior
  with tf.Graph().as_default():
    w, center, trains, session = _two_calls(rho=0.5)
    view, = [v for v in tf1.local_variables()
             if v.op.name == 'local_center_variable/w']
    for _ in range(3):
      before = session.run(center)
      session.run(trains)
      assert session.run(view) == before


class _Assigning(tf1.train.Optimizer):
  """Assigns by itself, and reads the step."""

  def __init__(self):
    super().__init__(False, 'Assigning')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    rate = 1.0 / (1.0 + tf.cast(global_step.read_value(), tf.float32))
    return tf.group(*(v.assign_sub(rate * g) for g, v in grads_and_vars))


@pytest.mark.parametrize('wrap', [
    lambda optimizer: optimizer,
    lambda optimizer: variable_clipping.VariableClippingOptimizer(
        optimizer, {'w': ()}, 9.0)], ids=['bare', 'wrapped'])
def test_an_optimizer_that_assigns_reads_the_step(behavior, wrap):
  del behavior
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    getter = Getter('')
    w = _variable(getter, 'w', 0.0, use_resource=True)
    optimizer = _optimizer(getter, wrap(_Assigning()), moving_rate=0.5)
    train = optimizer.apply_gradients([(tf.constant(-1.0), w)], step)
    with _session(optimizer) as session:
      for expected in ([1, 0.5, 0.5], [2, 0.75, 0.75]):  # 1; .5 and 1 / 2.
        session.run(train)
        assert session.run([step, w, _center(getter, w)]) == expected


def test_slots_made_in_a_condition_stay_on_the_worker(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('/job:worker/task:1')
    w = _variable(getter)
    optimizer = _optimizer(getter, tf1.train.AdamOptimizer(0.1))
    should = tf1.placeholder(tf.bool, [])
    tf.cond(should, lambda: tf.group(optimizer.minimize(w * w)), tf.no_op)
    assert [v.op.name for v in tf1.global_variables()] == [
        'global_center_variable/w']
    state = [v for v in optimizer.variables() if 'local_step' not in v.name]
    assert len(state) == 5  # The call's turn, too.
    assert {v.device for v in state} == {'/job:worker/task:1'}


def test_nobody_waits_unless_asked_to(behavior):
  with tf.Graph().as_default() as graph:
    getter = elastic_graphs.Getter('')
    elastic_graphs.variable(getter)
    optimizer = elastic_average.ElasticAverageOptimizer(
        elastic_graphs.sgd(), num_worker=2, ea_custom_getter=getter)
    optimizer.get_init_op(0)
    assert not [op for op in graph.get_operations() if 'Queue' in op.type]
    assert optimizer.start_from_center()[1] is None


def test_only_who_has_a_penalty_lists_the_centre_as_it_was_seen(behavior):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter)
    pulled = elastic_graphs.make_optimizer(getter, rho=0.5)
    free = elastic_graphs.make_optimizer(getter)
    seen = 'local_center_variable/w'
    assert seen not in [v.op.name for v in pulled.variables()]
    pulled.apply_gradients(pulled.compute_gradients(w * 1.0, [w]))
    assert seen in [v.op.name for v in pulled.variables()]
    assert seen not in [v.op.name for v in free.variables()]


@pytest.mark.parametrize('call', (
    lambda optimizer, w: optimizer.compute_gradients(w * w),
    lambda optimizer, w: optimizer.apply_gradients([(tf.constant(1.0), w)])))
def test_a_strategy_is_named_by_every_call(behavior, call):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter)
    optimizer = elastic_graphs.make_optimizer(getter)
    with tf.distribute.OneDeviceStrategy('/cpu:0').scope():
      with pytest.raises(RuntimeError, match='a call in a strategy'):
        call(optimizer, w)


@pytest.mark.parametrize('pairs_as', [list, iter], ids=['list', 'once'])
def test_gradients_may_come_from_a_zip(behavior, pairs_as):
  """A statistic that the gradients depend on is averaged, not shared."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    step = tf1.train.get_or_create_global_step()
    w = _variable(getter, 'w', 0.0)
    with tf1.variable_scope('', custom_getter=getter):
      mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    optimizer = _optimizer(getter, communication_period=1, moving_rate=0.5)
    x = tf1.placeholder_with_default(1.0, [])
    with tf.control_dependencies([mean.assign_add(x)]):
      gradients = [-x]
    train_op = optimizer.apply_gradients(
        pairs_as(list(zip(gradients, [w]))), step)
    with _session(optimizer) as session:
      session.run([v.initializer for v in optimizer.variables()])
      session.run(train_op)
      for v in (w, mean):
        assert session.run([v, _center(getter, v)]) == [0.5, 0.5]


@pytest.mark.parametrize('in_sequence', [False, True])
def test_each_of_two_optimizers_counts_its_exchanges(behavior, in_sequence):
  """Also if one waits for the other, whose exchange is no other count."""
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    step = tf1.train.get_or_create_global_step()
    a, b = _variable(getter, 'a', 0.0), _variable(getter, 'b', 0.0)
    first, second = (_optimizer(getter, communication_period=2,
                                moving_rate=0.5) for _ in range(2))
    train = first.minimize(-a, step, [a])
    with tf1.control_dependencies([train] if in_sequence else []):
      train = tf.group(train, second.minimize(-b, step, [b]))
    with _session(first) as session:
      session.run([v.initializer for optimizer in (first, second)
                   for v in optimizer.variables()])
      for _ in range(4):
        session.run(train)
      assert session.run(step) == 4


def test_no_variables_are_not_all_variables(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    a = _variable(getter, 'a', 0.0)
    with pytest.raises(ValueError, match='No variables to optimize'):
      _optimizer(getter).minimize(-a, None, [])
