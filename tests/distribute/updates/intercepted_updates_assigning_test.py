# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers that assign by themselves are reduced, applied and told of."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']


class Summing(tf1.train.Optimizer):
  """Subtracts the sum of all gradients so far, of all variables alike."""

  def __init__(self):
    super().__init__(False, 'Summing')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = [] if global_step is None else [global_step.assign_add(1)]
    for gradient, variable in grads_and_vars:
      if gradient is None:
        continue
      name = variable.name.split(':')[0]
      total = tf1.get_variable(
          f'{name}/total', variable.shape, trainable=False,
          initializer=tf1.zeros_initializer())
      now = total + tf.convert_to_tensor(gradient)
      updates += [total.assign(now), variable.assign(variable - now)]
    return tf.group(*updates)


def _mirrored():
  return distribute.VariableClippingStrategy(
      tf.distribute.MirroredStrategy(
          DEVICES, tf.distribute.ReductionToOneDevice()), {'w': 0}, 1e6)


# name: (make the strategy, the sum of the replicas' gradients)
STRATEGIES = {
    'one device': (lambda: distribute.VariableClippingStrategy(
        tf.distribute.OneDeviceStrategy('/cpu:0'), {'w': 0}, 1e6), 1),
    'mirrored': (_mirrored, 3),
    'cross shard': (lambda: distribute.CrossShardStrategy(DEVICES), 3),
    'drop stale': (
        lambda: distribute.DropStaleGradientStrategy(staleness=9), 1),
    'elastic': (lambda: distribute.ElasticAverageStrategy(
        communication_period=1, moving_rate=0.0, count_steps='local'), 1),
}


class Decaying(tf1.train.Optimizer):
  """Divides the gradient by the number of the step that it is given."""

  def __init__(self):
    super().__init__(False, 'Decaying')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    rate = 1.0 / (1.0 + tf.cast(global_step.read_value(), tf.float32))
    with tf.control_dependencies([
        v.assign_sub(rate * g) for g, v in grads_and_vars if g is not None]):
      return tf.group(global_step.assign_add(1), name=name)


def _train(strategy, gradient_of, num_steps=2, make_optimizer=Summing,
           scope=contextlib.nullcontext):
  """Runs steps in a graph; returns all global variables, and the step."""
  with tf.Graph().as_default(), strategy.scope():
    step = tf1.train.create_global_step()

    def replica():
      context = tf.distribute.get_replica_context()
      own = 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
      w = tf1.get_variable('w', initializer=[1.0, 2.0, 3.0])
      unused = tf1.get_variable('unused', initializer=7.0)
      with scope():
        return make_optimizer().apply_gradients(
            [(None, unused), (gradient_of(own), w)], step)

    result = strategy.experimental_local_results(
        strategy.extended.call_for_each_replica(replica))
    with tf1.Session() as session:
      session.run([tf1.global_variables_initializer()])
      session.run([tf1.local_variables_initializer()])
      for _ in range(num_steps):
        session.run(result)
      return {v.name.split(':')[0]: session.run(v) for v in (
          *tf1.trainable_variables(), *tf1.global_variables())}


GRADIENTS = {
    'dense': (lambda own: own * tf.ones([3]), [1.0, 1.0, 1.0]),
    'sparse': (lambda own: tf.IndexedSlices(
        own * tf.ones([2]), tf.constant([0, 0]), tf.constant([3])),
               [2.0, 0.0, 0.0]),
}


@pytest.mark.parametrize('kind', GRADIENTS)
@pytest.mark.parametrize('name', STRATEGIES)
def test_gradients_are_reduced_and_state_has_the_plain_name(
    behavior, name, kind):
  make, factor = STRATEGIES[name]
  gradient_of, gradient = GRADIENTS[kind]
  values = _train(make(), gradient_of)
  total = 2 * factor * np.array(gradient)
  # After two steps the sums are g and 2 g.
  if name == 'elastic':  # The centre does not move; the copy is local.
    np.testing.assert_allclose(values['w'], [1.0, 2.0, 3.0])
  else:
    np.testing.assert_allclose(values['w'], [1, 2, 3] - 1.5 * total)
  np.testing.assert_allclose(values['w/total'], total)
  assert values['unused'] == 7.0
  assert values['global_step'] == 2
  assert set(values) == {'w', 'w/total', 'unused', 'global_step'}


@pytest.mark.parametrize('name', STRATEGIES)
def test_state_that_is_made_in_a_scope_has_its_name(behavior, name):
  make, factor = STRATEGIES[name]
  values = _train(make(), GRADIENTS['dense'][0],
                  scope=lambda: tf1.variable_scope('train'))
  np.testing.assert_allclose(values['train/w/total'], 2 * factor * np.ones(3))
  assert set(values) == {'w', 'train/w/total', 'unused', 'global_step'}


@pytest.mark.parametrize('name', STRATEGIES)
def test_an_optimizer_reads_the_step_that_it_is_given(behavior, name):
  make, factor = STRATEGIES[name]
  values = _train(make(), GRADIENTS['dense'][0], make_optimizer=Decaying)
  if name != 'elastic':  # The centre does not move.
    np.testing.assert_allclose(
        values['w'], [1, 2, 3] - (1 + 1 / 2) * factor * np.ones(3))
  assert values['global_step'] == 2


@pytest.mark.parametrize('is_around', [True, False])
def test_function_of_a_strategy_in_eager_execution(is_around):
  strategy = distribute.CrossShardStrategy(DEVICES)
  with strategy.scope():
    w = tf.Variable([1.0, 2.0], name='w')

  class Negating(tf1.train.Optimizer):
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
      return tf.group(*(v.assign_sub(g) for g, v in grads_and_vars))

  def step():
    context = tf.distribute.get_replica_context()
    own = 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
    Negating(False, 'n').apply_gradients([(own * tf.ones([2]), w)])

  if is_around:
    tf.function(lambda: strategy.run(step))()
  else:
    strategy.run(tf.function(step))
  for copy in strategy.experimental_local_results(w):
    np.testing.assert_allclose(copy.numpy(), [1.0 - 3.0, 2.0 - 3.0])


class _Fresh(tf1.train.Optimizer):
  """Makes state anew in each call, with `tf.Variable`."""

  def __init__(self):
    super().__init__(False, 'Fresh')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = []
    for gradient, variable in grads_and_vars:
      total = tf1.Variable(tf.zeros(variable.shape), trainable=False,
                           name=f'{variable.op.name}/total')
      with tf.control_dependencies([total.assign_add(gradient)]):
        updates.append(variable.assign_sub(gradient))
    return tf.group(*updates)


@pytest.mark.parametrize('calls', (1, 2))
def test_each_call_has_state_of_its_own(behavior, calls):
  def step():
    variables = [tf1.get_variable(name, initializer=[1.0]) for name in 'vw']
    optimizer = _Fresh()
    return tf.group(*(
        optimizer.apply_gradients([(tf.ones([1]), v) for v in variables])
        for _ in range(calls)))

  with tf.Graph().as_default():
    strategy = _mirrored()
    with strategy.scope():
      strategy.extended.call_for_each_replica(step)
    totals = {v.name for v in tf1.global_variables() if 'total' in v.name}
    assert len({name for name in totals if 'replica' not in name}) == 2 * calls
