# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What v1 optimizers keep is where the functions look for it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import optimizers

tf1 = tf.compat.v1


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.5)


class _Noting(tf1.train.GradientDescentOptimizer):
  """Notes who makes a variable, where it applies gradients."""

  def apply_gradients(self, *args, **kwargs):
    self.own = optimizers.is_made_by_optimizer()
    tf.keras.Sequential([_Layer(self)])(tf.ones([1, 1]))
    return super().apply_gradients(*args, **kwargs)


class _Layer(tf.keras.layers.Layer):
  """Notes it in a layer, which is nearer than the optimizer."""

  def __init__(self, optimizer):
    super().__init__()
    self.notes = {'optimizer': optimizer}

  def call(self, inputs):
    self.notes['optimizer'].in_layer = optimizers.is_made_by_optimizer()
    return inputs


def test_the_stack_tells_what_an_optimizer_makes():
  assert not optimizers.is_made_by_optimizer()
  variable, found = tf.Variable(1.0), []
  optimizer = _Noting(0.5)

  def loss():
    found.append(optimizers.is_made_by_optimizer())
    return variable * 2.0

  optimizer.minimize(loss, var_list=[variable])
  assert (found, optimizer.own, optimizer.in_layer) == ([False], True, False)


@pytest.mark.parametrize('kind', [
    tf.keras.optimizers.SGD, tf.keras.optimizers.legacy.SGD])
def test_the_stack_tells_what_a_keras_optimizer_makes(kind):
  made, found = [], []

  def create(next_creator, **kwargs):
    made.append(optimizers.is_made_by_optimizer())
    return next_creator(**kwargs)

  variable = tf.Variable(1.0)

  def loss():
    found.append(optimizers.is_made_by_optimizer())
    return variable * 2.0

  with tf.variable_creator_scope(create):
    kind(0.5, momentum=0.5).minimize(loss, [variable])
  assert made and all(made)
  assert found == [False]


def test_the_stack_tells_who_applies():
  kind, found = tf1.train.SyncReplicasOptimizer, []

  class Asks(tf1.train.GradientDescentOptimizer):

    def apply_gradients(self, *args, **kwargs):
      found.append(optimizers.is_applied_by(kind))
      return super().apply_gradients(*args, **kwargs)

  for optimizer in (Asks(0.5), kind(Asks(0.5), 1, 1)):
    with tf.Graph().as_default():
      optimizer.minimize(tf1.get_variable('v', []).value(),
                         tf1.train.create_global_step())
  assert found == [False, True]


def test_state_is_created_without_an_update():
  with tf.Graph().as_default():
    variable = tf1.get_variable('v', [])
    optimizer = tf1.train.AdamOptimizer()
    optimizers.state_creator(optimizer)([variable])
    assert optimizer.get_slot(variable, 'm') is not None
    assert len(optimizer.variables()) == 4  # m, v and two powers of beta


@pytest.mark.parametrize('make', [
    tf1.train.AdadeltaOptimizer,
    lambda rate: tf1.train.AdagradDAOptimizer(rate, global_step=0),
    tf1.train.AdagradOptimizer,
    tf1.train.AdamOptimizer,
    tf1.train.FtrlOptimizer,
    tf1.train.GradientDescentOptimizer,
    lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
    tf1.train.ProximalAdagradOptimizer,
    tf1.train.ProximalGradientDescentOptimizer,
    tf1.train.RMSPropOptimizer,
])
def test_every_v1_optimizer_tells_its_learning_rate(make):
  assert optimizers.learning_rate_of(make(0.25)) == 0.25


def test_a_rate_is_called_and_looked_up_inside_a_wrapper():
  inner = tf1.train.AdamOptimizer(lambda: 0.125)
  wrapped = tf1.train.SyncReplicasOptimizer(inner, 1)
  assert optimizers.learning_rate_of(wrapped) == 0.125
  assert optimizers.learning_rate_of(tf1.train.Optimizer(False, 'o')) is None


@pytest.mark.parametrize('wrap', [
    lambda inner: tf1.train.SyncReplicasOptimizer(inner, 1),
    tf1.tpu.CrossShardOptimizer,
    lambda inner: tf1.train.experimental.MixedPrecisionLossScaleOptimizer(
        inner, 'dynamic'),
])
def test_a_wrapper_tells_what_it_holds(wrap):
  inner = _sgd()
  assert optimizers.wrapped_optimizer(wrap(inner)) is inner
  assert optimizers.wrapped_optimizer(inner) is None


def test_a_program_calls_the_field_as_it_likes():
  class Holder(tf1.train.Optimizer):
    def __init__(self, inner):
      super().__init__(False, 'holder')
      self.of_the_program = inner

  class Wrapper(Holder):
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
      return self.of_the_program.apply_gradients(grads_and_vars)

  inner = _sgd()
  assert optimizers.wrapped_optimizer(Wrapper(inner)) is inner
  assert [optimizers.delegates(each) for each in (
      Wrapper(inner), Holder(inner), inner)] == [True, False, False]


@pytest.mark.parametrize('has_variable', [True, False])
def test_an_optimizer_refuses_to_apply_nothing(has_variable):
  with tf.Graph().as_default():
    pairs = [(None, tf1.get_variable('v', []))] if has_variable else []
    with pytest.raises(ValueError) as info:
      _sgd().apply_gradients(pairs)
  assert optimizers.is_no_gradient_error(info.value)
  assert not optimizers.is_no_gradient_error(ValueError('gradients'))


def test_an_update_is_applied_in_a_cross_replica_context():
  strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    variable = tf1.get_variable('v', initializer=[4.0])
    gradient = strategy.run(lambda: tf.constant([1.0]))
    update = optimizers.distributed_apply(
        _sgd(), strategy, [(gradient, variable)], None, None)
    session.run(tf1.global_variables_initializer())
    session.run(update)
    # 4 - 0.5 * (1 + 1)
    assert [session.run(v)[0] for v in variable.values] == [3.0, 3.0]


def test_an_optimizer_without_updates_of_its_own_is_known():
  class _ByItself(tf1.train.Optimizer):

    def apply_gradients(self, *unused_args, **unused_kwargs):
      pass

  assert optimizers.implements_updates(_sgd())
  assert not optimizers.implements_updates(_ByItself(False, 'by_itself'))
