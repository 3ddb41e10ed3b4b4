# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients applied under a boolean tensor, or if finite.

on_nonfinite_test trains with gradients that are not.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.updates import conditional_update

tf1 = tf.compat.v1


def _build(optimizer):
  """One variable at 1, gradient 1; a placeholder decides."""
  variable = tf1.get_variable('v', initializer=1.0)
  step = tf1.train.get_or_create_global_step()
  decide = tf1.placeholder(tf.bool, [], name='decide')
  update = conditional_update.apply_gradients_if(
      decide, optimizer, [(tf.ones([]), variable)], global_step=step,
      name='update')
  return variable, step, decide, update


def test_only_true_changes_the_variable_and_the_step(behavior):
  with tf.Graph().as_default():
    v, step, decide, update = _build(tf1.train.GradientDescentOptimizer(0.25))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      got = []
      for decision in (True, False, True):
        session.run(update, {decide: decision})
        got.append(tuple(session.run((v, step))))
  # 1 - .25, unchanged, - .25 again.
  assert got == [(0.75, 1), (0.75, 1), (0.5, 2)]


def test_skipped_adam_keeps_slots_and_powers(behavior):
  with tf.Graph().as_default():
    *_, decide, update = _build(tf1.train.AdamOptimizer(0.1))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(update, {decide: True})
      before = session.run(tf1.global_variables())
      session.run(update, {decide: False})
      np.testing.assert_equal(session.run(tf1.global_variables()), before)


def test_names_are_those_of_an_unconditional_update(behavior):
  with tf.Graph().as_default():
    _build(tf1.train.AdamOptimizer(0.1))
    names = {v.op.name for v in tf1.global_variables()}
  assert names == {'v', 'global_step', 'v/Adam', 'v/Adam_1', 'beta1_power',
                   'beta2_power'}


class _Averaging(tf1.train.Optimizer):
  """A user's own wrapper; keeps averages, and the inner one in a field."""

  def __init__(self, inner):
    super().__init__(False, 'Averaging')
    self._inner = inner
    self._average = tf.train.ExponentialMovingAverage(0.5)

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    update = self._inner.apply_gradients(grads_and_vars, global_step)
    # Those that an optimizer makes for all variables together.
    with tf.init_scope(), tf1.name_scope('counts'):
      self._count = self._create_non_slot_variable(
          0.0, 'count', grads_and_vars[0][1])
    with tf.control_dependencies([update]):
      return tf.group(self._average.apply([v for _, v in grads_and_vars]),
                      self._count.assign_add(1.0), name=name)


@pytest.mark.parametrize('scope', ['', 'train'])
@pytest.mark.parametrize('use_resource', [True, False])
def test_names_of_what_a_users_wrapper_makes_are_the_same(
    behavior, use_resource, scope):
  if behavior == 'v2' and scope:
    pytest.skip('TensorFlow lifts variables out of a branch to the top scope.')
  if behavior == 'v2' and not use_resource:
    pytest.skip('TensorFlow cannot start an average from a ref in v2.')

  def names(apply):
    with tf.Graph().as_default(), tf1.Session() as session:
      v = tf1.get_variable('v', initializer=1.0, use_resource=use_resource)
      optimizer = _Averaging(tf1.train.AdamOptimizer(0.1))
      with tf1.name_scope(scope or None):
        update = apply(optimizer, [(tf.ones([]), v)])
      session.run(tf1.global_variables_initializer())
      session.run(update)
      return {v.op.name: session.run(v) for v in tf1.global_variables()}

  bare = names(lambda optimizer, pairs: optimizer.apply_gradients(pairs))
  assert len(bare) == 7  # v; m, v and two powers of Adam; average and count
  assert names(lambda optimizer, pairs: conditional_update.apply_gradients_if(
      tf.constant(True), optimizer, pairs)) == bare


def test_an_exported_graph_can_be_imported_and_trained(behavior, tmp_path):
  path = str(tmp_path / 'graph.meta')
  with tf.Graph().as_default():
    *_, update = _build(tf1.train.AdamOptimizer(0.1))
    assert update in tf1.get_collection(tf1.GraphKeys.TRAIN_OP)
    tf1.train.export_meta_graph(path)
  with tf.Graph().as_default():
    tf1.train.import_meta_graph(path, clear_devices=True)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run('update', {'decide:0': True})
      assert session.run(tf1.train.get_global_step()) == 1


def test_branches_run_what_the_caller_adds(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0)
    applied = tf1.get_variable('applied', initializer=0.0)
    skipped = tf1.get_variable('skipped', initializer=0.0)
    decide = tf1.placeholder(tf.bool, [])
    update = conditional_update.apply_gradients_if(
        decide, tf1.train.GradientDescentOptimizer(1.0), [(tf.ones([]), v)],
        # Sees the variable after the update.
        on_apply=lambda: [tf1.assign(applied, v.read_value())],
        on_skip=lambda: [tf1.assign_add(skipped, 1.0)])
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(update, {decide: True})
      session.run(update, {decide: False})
      session.run(update, {decide: False})
      assert session.run((v, applied, skipped)) == (0.0, 0.0, 2.0)


def test_eager_and_function_decide_too():
  for wrap in (lambda f: f, tf.function):
    v = tf.Variable(1.0)
    optimizer = tf1.train.AdamOptimizer(0.1)

    @wrap
    def step(decide, v=v, optimizer=optimizer):
      conditional_update.apply_gradients_if(
          decide, optimizer, [(tf.ones([]), v)])

    step(tf.constant(False))
    assert float(v.numpy()) == 1.0
    step(tf.constant(True))
    # Adam's first step has the length of the learning rate.
    np.testing.assert_allclose(float(v.numpy()), 0.9, rtol=1e-6)


_STRATEGIES = pytest.mark.parametrize('strategy_fn', [
    lambda: tf.distribute.OneDeviceStrategy('/cpu:0'),
    lambda: tf.distribute.MirroredStrategy(
        ['/cpu:0', '/cpu:1'],
        cross_device_ops=tf.distribute.ReductionToOneDevice()),
], ids=['one_device', 'mirrored'])


@_STRATEGIES
@pytest.mark.parametrize('in_function', [False, True])
def test_replicas_decide_once(strategy_fn, in_function):
  strategy = strategy_fn()
  with strategy.scope():
    v = tf.Variable(1.0)
  optimizer = tf1.train.GradientDescentOptimizer(0.25)

  def replica_step(decide):
    conditional_update.apply_gradients_if(
        decide, optimizer, [(tf.ones([]), v)])

  def step(decide):
    strategy.run(replica_step, args=(decide,))

  step = tf.function(step) if in_function else step
  step(tf.constant(False))
  assert float(v.numpy()) == 1.0
  step(tf.constant(True))
  # The gradients of the replicas, 1 each, are summed.
  assert float(v.numpy()) == 1.0 - 0.25 * strategy.num_replicas_in_sync


class _Scaling(tf1.train.GradientDescentOptimizer):
  """A user's own optimizer, whose `apply_gradients` takes a scale, too."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      scale=1.0):
    return super().apply_gradients(
        [(g * scale, v) for g, v in grads_and_vars], global_step, name)


@_STRATEGIES
def test_replicas_hand_on_what_the_optimizer_takes_besides(strategy_fn):
  strategy = strategy_fn()
  with strategy.scope():
    v = tf.Variable(1.0)
  optimizer = _Scaling(0.25)

  @tf.function
  def step():
    conditional_update.apply_gradients_if(
        tf.constant(True), optimizer, [(tf.ones([]), v)], scale=3.0)

  strategy.run(step)
  assert float(v.numpy()) == 1.0 - 3 * 0.25 * strategy.num_replicas_in_sync


@pytest.mark.parametrize('decisions, want', [
    ((True, False), 1.0), ((False, True), 1.0), ((True, True), 0.5)])
def test_one_replica_that_refuses_is_enough(decisions, want):
  strategy = tf.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'],
      cross_device_ops=tf.distribute.ReductionToOneDevice())
  with strategy.scope():
    v = tf.Variable(1.0)

  def replica_step():
    context = tf.distribute.get_replica_context()
    conditional_update.apply_gradients_if(
        tf.gather(tf.constant(decisions), context.replica_id_in_sync_group),
        tf1.train.GradientDescentOptimizer(0.25), [(tf.ones([]), v)])

  strategy.run(tf.function(replica_step))
  assert float(v.numpy()) == want


@pytest.mark.parametrize('pairs, text', [
    ([], 'must not be empty'), ([(None, 0)], 'must hold a gradient')])
def test_nothing_to_apply_is_an_error(pairs, text):
  v = tf.Variable(1.0)
  with pytest.raises(ValueError, match=f'`grads_and_vars` {text}'):
    conditional_update.apply_gradients_if(
        tf.constant(True), tf1.train.GradientDescentOptimizer(1.0),
        [(g, v) for g, _ in pairs])


class _NotedCalls(tf1.train.GradientDescentOptimizer):
  calls = ()

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    self.calls += (kwargs,)
    return super().apply_gradients(grads_and_vars, *args, **kwargs)


def test_a_replica_that_skips_aggregation_decides_for_itself(
    behavior, monkeypatch):
  def meet_others(*args, **kwargs):
    raise AssertionError('replicas meet')

  def apply():
    with monkeypatch.context() as patch:
      patch.setattr(type(tf.distribute.get_replica_context()), 'merge_call',
                    meet_others)
      return conditional_update.apply_gradients_if(
          tf.constant(True), optimizer, [(tf.constant(1.0), v)],
          skip_gradients_aggregation=True)

  strategy = tf.distribute.OneDeviceStrategy('/cpu:0')
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    v = tf1.get_variable('v', initializer=1.0, use_resource=True)
    optimizer = _NotedCalls(0.5)
    update = strategy.run(apply)
    assert [kwargs['skip_gradients_aggregation']
            for kwargs in optimizer.calls] == [True]
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(update))
    assert session.run(v) == 0.5


@pytest.mark.parametrize('decide, expected', (
    (True, ['prepared', ('applied', 0.5)]),
    (False, ['prepared', ('skipped', 1.0)])))
def test_eager_execution_calls_what_the_caller_adds(decide, expected):
  v, calls = tf.Variable(1.0), []
  conditional_update.apply_gradients_if(
      tf.constant(decide), tf1.train.GradientDescentOptimizer(0.5),
      [(tf.ones([]), v)], prepare=lambda: calls.append('prepared'),
      on_apply=lambda: calls.append(('applied', float(v))),
      on_skip=lambda: calls.append(('skipped', float(v))))
  assert calls == expected


@pytest.mark.parametrize('policy', ['drop', 'raise'])
def test_finite_updates_are_made(behavior, policy):
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(conditional_update.accepted(
        policy, [tf.constant(1.0)], ['v'], tf.constant(5)))


def test_an_error_names_worker_step_and_variables(behavior, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'worker': [f'localhost:{port}' for port in range(1, 5)]},
      'task': {'type': 'worker', 'index': 3}}))
  with tf.Graph().as_default(), tf1.Session() as session:
    values = [tf.constant(value) for value in (
        [1.0, 2.0], [[float('nan'), 1.0]], float('-inf'))]
    dropped = conditional_update.accepted(
        'drop', values, list('abc'), tf.constant(17))
    raised = conditional_update.accepted(
        'raise', values, list('abc'), tf.constant(17))
    assert not session.run(dropped)
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
        r'(?s)worker:3, at step.*17.*update of.*b.*c')):
      session.run(raised)


def test_the_summary_counts_what_may_be_dropped(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    updates = conditional_update.FiniteUpdates('drop', 'counter')
    updates.summarize('before')
    assert not tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    updates.accepted([tf.constant(1.0)], ['v'], tf.constant(5))
    updates.summarize('drops')
    session.run(tf1.local_variables_initializer())
    for _ in range(3):
      session.run(updates.count())
    summary, = session.run(tf1.get_collection(tf1.GraphKeys.SUMMARIES))
  assert [(value.tag, value.simple_value) for value in
          tf1.Summary.FromString(summary).value] == [('drops', 3.0)]


def test_there_is_no_summary_without_a_plain_graph():
  updates = conditional_update.FiniteUpdates('drop', 'counter')
  updates.accepted([tf.constant(1.0)], ['v'], tf.constant(5))
  assert updates.num_nonfinite is not None

  @tf.function
  def step():
    updates.summarize('inside')
    return tf1.get_collection(tf1.GraphKeys.SUMMARIES) == []

  updates.summarize('eager')
  assert step()
