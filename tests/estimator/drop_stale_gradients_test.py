# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decorator that drops stale gradients."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin.estimator import drop_stale_gradients

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN


def _explicit(optimizer):
  return tfplugin.DropStaleGradientOptimizer(optimizer, staleness=3)


@pytest.mark.parametrize('style', decorated_models.STYLES)
def test_equals_the_wrapper_bit_for_bit(behavior, style):
  decorated = drop_stale_gradients(
      decorated_models.regression(style), staleness=3)
  explicit = decorated_models.regression(style, wrap=_explicit)
  decorated_models.assert_equal(decorated_models.train(decorated),
                                decorated_models.train(explicit))


def test_adam_keeps_its_names(behavior):
  def adam():
    return tf1.train.AdamOptimizer(0.1)

  plain = decorated_models.train(decorated_models.regression(
      make_optimizer=adam))
  values = decorated_models.train(drop_stale_gradients(
      decorated_models.regression(make_optimizer=adam), staleness=0))
  for name, value in plain.items():
    np.testing.assert_array_equal(values[name], value, err_msg=name)
  assert set(values) - set(plain) == {
      'stale_counter', 'DropStaleGradient/num_applied',
      'DropStaleGradient/num_dropped'}


@pytest.mark.parametrize('style', ('tf_gradients', 'two_optimizers'))
def test_wrapper_in_the_model_fn_is_not_doubled(style):
  explicit = decorated_models.regression(style, wrap=_explicit)
  # Another bound: that of the model_fn counts.
  decorated = drop_stale_gradients(explicit, staleness=0)
  decorated_models.assert_equal(decorated_models.train(decorated),
                                decorated_models.train(explicit))


def test_wrapper_inside_another_is_found():
  def wrap(optimizer):
    return tfplugin.VariableClippingOptimizer(
        _explicit(optimizer), {'weight': 0}, 0.5)

  explicit = decorated_models.regression(wrap=wrap)
  decorated_models.assert_equal(
      decorated_models.train(drop_stale_gradients(explicit, staleness=0)),
      decorated_models.train(explicit))


def test_another_wrapper_is_wrapped_whole():
  def clip(optimizer):
    return tfplugin.VariableClippingOptimizer(optimizer, {'weight': 0}, 0.5)

  decorated_models.assert_equal(
      decorated_models.train(drop_stale_gradients(
          decorated_models.regression(wrap=clip), staleness=3)),
      decorated_models.train(decorated_models.regression(
          wrap=lambda optimizer: _explicit(clip(optimizer)))))


class _Decaying(tf1.train.GradientDescentOptimizer):
  """A user's own: adds to the gradients, then applies as any."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    return super().apply_gradients(
        [(g + 0.25 * v, v) for g, v in grads_and_vars], global_step, name)


def test_users_apply_gradients_runs_once(behavior):
  model_fn = decorated_models.regression(
      make_optimizer=lambda: _Decaying(0.125))
  plain = decorated_models.train(model_fn)
  values = decorated_models.train(drop_stale_gradients(model_fn, staleness=0))
  np.testing.assert_array_equal(values['weight'], plain['weight'])


@pytest.mark.parametrize('use_locking', (False, True))
@pytest.mark.parametrize('num_optimizers', (1, 2))
@pytest.mark.parametrize('staleness, accepted', ((4, False), (5, True)))
def test_drops_what_others_have_overtaken(
    behavior, staleness, accepted, num_optimizers, use_locking):
  """Between the forward pass and the update others make 5 steps of -0.5.

  Two updates, by one optimizer or two, are one step: both or none.
  """

  @drop_stale_gradients(staleness=staleness, use_locking=use_locking)
  def model_fn(features, mode):
    del features
    w = tf1.get_variable('w', initializer=1.0)
    v = tf1.get_variable('v', initializer=1.0)
    held = tf1.py_func(others_train, [w.read_value()], tf.float32)
    held.set_shape([])
    loss = w + tf.stop_gradient(held) * w
    first = second = tf1.train.GradientDescentOptimizer(0.5)
    if num_optimizers == 2:
      second = tf1.train.GradientDescentOptimizer(0.5)
    step = tf1.train.get_global_step()
    train_op = tf.group(first.minimize(loss, step, var_list=[w]),
                        second.minimize(2.0 * v, var_list=[v]))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  def others_train(value):
    session.run(others)
    return np.zeros_like(value)

  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    spec = model_fn(features=None, mode=TRAIN)
    w, v = tf1.trainable_variables()
    others = [w.assign_sub(2.5), step.assign_add(5)]
    with tf1.Session() as session:
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      session.run(spec.train_op)
      assert session.run([w, v, step]) == [
          1.0 - 2.5 - 0.5 * accepted, 1.0 - 1.0 * accepted, 5 + accepted]


def test_every_optimizers_variables_are_read_after_one_reading(behavior):
  @drop_stale_gradients(staleness=0)
  def model_fn(features, mode):
    del features
    variables = [tf1.get_variable(name, initializer=1.0) for name in 'wv']
    losses = [tf.square(v, name=f'of_{v.op.name}') for v in variables]
    return tf.estimator.EstimatorSpec(mode, loss=sum(losses), train_op=tf.group(
        *(tf1.train.GradientDescentOptimizer(0.5).minimize(loss, var_list=[v])
          for loss, v in zip(losses, variables))))

  with tf.Graph().as_default() as graph:
    tf1.train.create_global_step()
    model_fn(features=None, mode=TRAIN)
    readings = []
    for name in ('of_w', 'of_v'):
      op = graph.get_operation_by_name(name)
      readings.append({waited.name for reader in (op, op.inputs[0].op)
                       for waited in reader.control_inputs})
  assert readings[0] == readings[1] and len(readings[0]) == 1


def test_evaluates_and_predicts_as_it_is():
  model_fn = decorated_models.regression()
  decorated = drop_stale_gradients(model_fn, staleness=1)
  for mode in (tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT):
    graphs = []
    for fn in (model_fn, decorated):
      with tf.Graph().as_default() as graph:
        decorated_models.call(fn, mode, tf.ones([4, 2]), tf.ones([4, 1]))
      graphs.append(graph.as_graph_def())
    assert graphs[0] == graphs[1]


def test_forms_of_use():
  def model_fn(features, labels, mode, scale=1.0):
    return decorated_models.regression()(features * scale, labels, mode)

  class Model:

    @drop_stale_gradients(staleness=3)
    def method(self, features, labels, mode):
      return model_fn(features, labels, mode)

  decorate = drop_stale_gradients(staleness=3)
  forms = [decorate(model_fn), drop_stale_gradients(model_fn, staleness=3),
           decorate(functools.partial(model_fn, scale=1.0)), Model().method]
  expected = decorated_models.train(forms[0])
  assert list(inspect.signature(forms[0]).parameters) == [
      'features', 'labels', 'mode', 'scale', 'config']
  for form in forms[1:]:
    decorated_models.assert_equal(decorated_models.train(form), expected)


def test_spec_is_the_model_fns_own(behavior):
  hook = tf1.train.SessionRunHook()
  scaffold = tf1.train.Scaffold()

  @drop_stale_gradients(staleness=3)
  def model_fn(features, labels, mode):
    spec = decorated_models.regression()(features, labels, mode)
    return spec._replace(training_hooks=(hook,), scaffold=scaffold)

  with tf.Graph().as_default():
    tf1.train.create_global_step()
    spec = decorated_models.call(
        model_fn, TRAIN, tf.ones([4, 2]), tf.ones([4, 1]))
  assert spec.training_hooks == (hook,)
  assert spec.scaffold is scaffold


@pytest.mark.parametrize('staleness, error', (
    (-1, ValueError), (1.5, TypeError), (True, TypeError)))
def test_bad_staleness_is_refused_where_it_is_given(staleness, error):
  with pytest.raises(error, match='`staleness`'):
    drop_stale_gradients(staleness=staleness)


@pytest.mark.parametrize('when', ('before', 'after'))
def test_a_model_fn_advances_the_step_by_itself(behavior, when):
  @drop_stale_gradients(staleness=0)
  def model_fn(features, mode):
    del features
    step = tf1.train.get_global_step()
    w = tf1.get_variable('w', initializer=1024.0)
    advance = tf1.assign(step, step + 1) if when == 'before' else None
    matrix = tf.random.uniform([100, 100])
    for _ in range(50):  # Longer than any write of the step.
      matrix = tf.matmul(matrix, matrix) * 0.01
    loss = w * w + 0.0 * tf.reduce_sum(matrix) * w
    update = tf1.train.GradientDescentOptimizer(0.25).minimize(loss)
    advance = tf1.assign(step, step + 1) if advance is None else advance
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(update, advance))

  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    spec = model_fn(features=None, mode=TRAIN)
    with tf1.Session() as session:
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      for _ in range(5):
        session.run(spec.train_op)
      assert session.run([*tf1.trainable_variables(), step]) == [32.0, 5]


def test_the_bound_may_be_a_tensor(behavior):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    bound = tf1.placeholder(tf.int32, [])
    spec = decorated_models.call(
        drop_stale_gradients(decorated_models.regression(), staleness=bound),
        TRAIN, *map(np.float32, decorated_models.first_batch()))
    weight, _ = tf1.trainable_variables()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      start = session.run(weight)
      # Nobody overtakes: the staleness is 0.
      session.run(spec.train_op, {bound: -1})
      np.testing.assert_array_equal(session.run(weight), start)
      assert session.run(step) == 0
      session.run(spec.train_op, {bound: 0})
      assert (session.run(weight) != start).all()
      assert session.run(step) == 1
