# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the delegation that the optimizers share."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


def _train(optimizer, steps=3):
  variable = tf1.get_variable('w', initializer=[1.0, 2.0])
  loss = tf.reduce_sum(tf.square(variable))
  train_op = optimizer.minimize(loss)
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(steps):
      session.run(train_op)
    names = sorted(v.op.name for v in tf1.global_variables())
    return session.run(variable), names


def test_wrapper_with_nothing_overridden_equals_bare_optimizer(behavior):
  results = []
  for wrap in (lambda o: o, lambda o: wrapper.OptimizerWrapper(o, False, 'W')):
    with tf.Graph().as_default():
      results.append(_train(wrap(tf1.train.AdamOptimizer(0.1))))
  np.testing.assert_array_equal(results[0][0], results[1][0])
  assert results[0][1] == results[1][1]


@pytest.mark.parametrize('make_opt, remedy', [
    (lambda: tf.keras.optimizers.SGD(), 'Keras optimizers are not supported'),
    (lambda: tf1.train.AdamOptimizer, r'`AdamOptimizer\(\.\.\.\)`'),
    (lambda: None, 'Pass e.g.'),
], ids=['keras', 'class', 'none'])
def test_wrong_optimizer_type_names_the_remedy(make_opt, remedy):
  opt = make_opt()
  with pytest.raises(TypeError, match=f'`opt` must be .* Received: .*{remedy}'):
    wrapper.OptimizerWrapper(opt, False, 'W')


class _Decayed(tf1.train.GradientDescentOptimizer):
  """Halves the variables that it is told of, beside its step."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      decay_var_list=None):
    decayed = {v.ref() for v in decay_var_list or ()}
    pairs = [(g + v / 2.0 if v.ref() in decayed else g, v)
             for g, v in grads_and_vars]
    return super().apply_gradients(pairs, global_step, name)


_WRAPPERS = {
    'none': wrapper.OptimizerWrapper,
    'clipping': lambda opt, *_: tfplugin.VariableClippingOptimizer(
        opt, {'rows': 1}, 100.0),
    'cross_shard': lambda opt, *_: tfplugin.CrossShardOptimizer(opt),
    'stale': lambda opt, *_: tfplugin.DropStaleGradientOptimizer(opt, 0),
    'tower': lambda opt, *_: tfplugin.TowerOptimizer(opt),
    'two': lambda opt, *_: tfplugin.CrossShardOptimizer(
        tfplugin.DropStaleGradientOptimizer(opt, 0)),
}


@pytest.mark.parametrize('call', ['minimize', 'apply_gradients'])
@pytest.mark.parametrize('name', _WRAPPERS)
def test_arguments_that_an_optimizer_adds_are_passed_on(behavior, name, call):
  with tf.Graph().as_default(), tf1.Session() as session:
    v, w = (tf1.get_variable(name, initializer=8.0) for name in 'vw')
    rows = tf1.get_variable('rows', initializer=[[1.0]])  # One to clip.
    loss, step = v + w + rows, tf1.train.create_global_step()
    inner = _Decayed(1.0)
    optimizer = _WRAPPERS[name](inner, False, 'wrapper')
    if call == 'minimize':
      train_op = optimizer.minimize(loss, step, decay_var_list=[w])
    else:
      train_op = optimizer.apply_gradients(
          optimizer.compute_gradients(loss), step, decay_var_list=[w])
    plain = optimizer.minimize(loss, step)
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run([v, w]) == [7.0, 3.0]
    session.run(plain)
    assert session.run([v, w]) == [6.0, 2.0]
    assert 'apply_gradients' not in vars(inner)


class _Noting(tfplugin.CrossShardOptimizer):
  """Has an argument of its own, besides those of the optimizer inside."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      noted=None):
    self.noted = noted
    return super().apply_gradients(grads_and_vars, global_step, name)


class _NotingAll(tfplugin.CrossShardOptimizer):
  """The same, and takes any argument."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      noted=None, **kwargs):
    self.noted = noted
    return super().apply_gradients(grads_and_vars, global_step, name, **kwargs)


@pytest.mark.parametrize('call', ['minimize', 'apply_gradients'])
@pytest.mark.parametrize('kind', [_Noting, _NotingAll])
@pytest.mark.parametrize('outer', [lambda opt: opt, tfplugin.TowerOptimizer])
def test_a_subclass_gets_its_own_arguments(behavior, kind, call, outer):
  with tf.Graph().as_default(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=8.0)
    inside = kind(_Decayed(1.0))
    optimizer = outer(inside)
    if call == 'minimize':
      train_op = optimizer.minimize(v * 2.0, decay_var_list=[v], noted='this')
    else:
      train_op = optimizer.apply_gradients(
          optimizer.compute_gradients(v * 2.0), decay_var_list=[v],
          noted='this')
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run(v) == 8.0 - 2.0 - 4.0
    assert inside.noted == 'this'


def test_a_method_that_an_instance_has_is_called_and_kept(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=8.0)
    inner, calls = _Decayed(1.0), []
    of_class = inner.apply_gradients

    def noting(*args, **kwargs):
      calls.append(kwargs)
      return of_class(*args, **kwargs)

    inner.apply_gradients = noting
    train_op = tfplugin.CrossShardOptimizer(inner).minimize(
        v * 2.0, decay_var_list=[v])
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run(v) == 8.0 - 2.0 - 4.0
    assert [call['decay_var_list'] for call in calls] == [[v]]
    assert inner.apply_gradients is noting


def test_arguments_that_no_optimizer_takes_are_refused():
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=8.0)
    optimizer = wrapper.OptimizerWrapper(
        tf1.train.GradientDescentOptimizer(1.0), False, 'wrapper')
    with pytest.raises(TypeError, match='decay_var_list'):
      optimizer.minimize(v * 2.0, decay_var_list=[v])


def test_added_arguments_are_passed_on_in_replicas(behavior):
  strategy = tfplugin.distribute.CrossShardStrategy(['CPU:0', 'CPU:1'])
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:

    def replica():
      v = tf1.get_variable('v', initializer=8.0, use_resource=True)
      optimizer = tfplugin.CrossShardOptimizer(_Decayed(1.0))
      return v, tf.group(optimizer.minimize(v * 2.0, decay_var_list=[v]))

    v, train_op = strategy.run(replica)
    session.run(tf1.global_variables_initializer())
    session.run(strategy.experimental_local_results(train_op))
    # Each of two replicas adds 8 / 2; the loss is halved, not the decay.
    assert session.run(list(strategy.experimental_local_results(v))) == [
        8.0 - 2.0 - 8.0] * 2


@pytest.mark.parametrize('method', ('compute_gradients', 'apply_gradients'))
def test_defaults_are_those_of_tensorflow(method):
  ours, theirs = (
      [(name, each.default) for name, each in inspect.signature(
          getattr(cls, method)).parameters.items()]
      for cls in (wrapper.OptimizerWrapper, tf1.train.Optimizer))
  assert ours == theirs


class _NotedArguments(tf1.train.GradientDescentOptimizer):

  def apply_gradients(self, grads_and_vars, **kwargs):
    self.noted = kwargs
    return super().apply_gradients(grads_and_vars, **kwargs)


@pytest.mark.parametrize('given, expected', (
    ({}, None), ({'skip_gradients_aggregation': False}, None),
    ({'skip_gradients_aggregation': True}, True)))
def test_what_is_not_set_is_not_handed_on(behavior, given, expected):
  # An older optimizer does not know the argument.
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=1.0)
    inner = _NotedArguments(0.5)
    wrapper.OptimizerWrapper(inner, False, 'around').apply_gradients(
        [(tf.constant(1.0), v)], **given)
    assert inner.noted.get('skip_gradients_aggregation') is expected


def test_an_object_based_checkpoint_has_what_is_inside(tmp_path):
  inner = tf1.train.AdamOptimizer(0.5)
  around = wrapper.OptimizerWrapper(inner, False, 'around')
  names = [name for name, _ in tf.train.list_variables(
      tf.train.Checkpoint(optimizer=around).write(str(tmp_path / 'empty')))]
  assert not any('beta1_power' in name for name in names)
  assert dict(around._trackable_children())['base_optimizer'] is inner
