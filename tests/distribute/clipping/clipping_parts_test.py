# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a partitioned variable of which a part has no gradient."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin import optimizers

tf1 = tf.compat.v1


def _mirrored():
  return tf1.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'],
      cross_device_ops=tf.distribute.ReductionToOneDevice())


BASES = {
    'ps': tf1.distribute.experimental.ParameterServerStrategy,
    'mirrored': _mirrored,
    'drop_stale': lambda: distribute.DropStaleGradientStrategy(staleness=0),
    'elastic': lambda: distribute.ElasticAverageStrategy(
        communication_period=10),
    'tower': lambda: distribute.TowerStrategy(['/cpu:0']),
    'cross_shard': lambda: distribute.CrossShardStrategy(['/cpu:0', '/cpu:1']),
}


class _AssignsItself(tf1.train.Optimizer):
  """Optimizer that overrides `apply_gradients`, as the one of BERT does."""

  def __init__(self):
    super().__init__(False, 'assigns_itself')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = [v.assign_sub(g) for g, v in grads_and_vars if g is not None]
    if global_step is not None:
      updates.append(global_step.assign_add(1))
    return tf.group(*updates, name=name)


def _sgd():
  return tf1.train.GradientDescentOptimizer(1.0)


def _model_fn(make_optimizer=_sgd, trained=(0,), var_list=False):
  """Returns a model_fn with a loss that depends on the parts `trained`."""

  def model_fn(features, labels, mode):
    del features, labels
    table = list(tf1.get_variable(
        'table', [4, 2], initializer=tf1.constant_initializer(5.0),
        partitioner=tf1.fixed_size_partitioner(2)))
    parts = [table[index] for index in trained]
    loss = tf.add_n([tf.reduce_sum(part) for part in parts])
    train_op = make_optimizer().minimize(
        loss, tf1.train.get_global_step(),
        var_list=parts if var_list else None)
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def _expected(trained, replicas=1):
  """Returns the parts: each column has a norm of 1 over both of them."""
  table = np.full([2, 2, 2], 5.0)
  table[list(trained)] -= replicas
  return table / np.linalg.norm(table[:, :, 0])


@pytest.mark.sampled(4)
@pytest.mark.parametrize('make_optimizer', [_sgd, _AssignsItself],
                         ids=['sgd', 'assigns_itself'])
@pytest.mark.parametrize('trained', [(0,), (1,), (0, 1)])
@pytest.mark.parametrize('base', BASES)
def test_a_strategy_clips_by_the_norm_of_all_parts(
    behavior, base, trained, make_optimizer):
  copies = []

  def make_saver():
    strategy = tf.distribute.get_strategy()
    for part in tf1.trainable_variables():
      copies.append([tf.identity(copy) for copy in (
          strategy.experimental_local_results(part))])
    return tf1.train.Saver()

  worker = strategy_worker.StrategyWorker(
      distribute.VariableClippingStrategy(BASES[base](), {'^table': 0}, 1.0),
      _model_fn(make_optimizer, trained), make_saver=make_saver)
  worker.step()
  values = worker.session.run(copies)
  expected = _expected(trained, 2 if base == 'mirrored' else 1)
  for part, part_copies in zip(expected, values):
    for value in part_copies:
      np.testing.assert_allclose(value, part, rtol=1e-6)


@pytest.mark.parametrize('var_list', [False, True])
@pytest.mark.parametrize('wrapped_by', ['optimizer', 'decorator'])
def test_a_wrapper_clips_by_the_norm_of_all_parts(
    behavior, wrapped_by, var_list):
  model_fn = _model_fn(_sgd, var_list=var_list)
  if wrapped_by == 'decorator':
    model_fn = estimator_lib.clip_variables(
        model_fn, rules={'^table': 0}, max_norm=1.0)
  else:
    model_fn = _model_fn(lambda: optimizers.VariableClippingOptimizer(
        _sgd(), {'^table': 0}, 1.0), var_list=var_list)
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.create_global_step()
    spec = model_fn(None, None, tf.estimator.ModeKeys.TRAIN)
    session.run(tf1.global_variables_initializer())
    session.run(spec.train_op)
    values = session.run(tf1.trainable_variables())
  np.testing.assert_allclose(values, _expected((0,)), rtol=1e-6)


class _OfKeras:
  """A Keras optimizer; `sums` as if the program summed the gradients itself."""

  def __init__(self, sums):
    self._sums = sums

  def minimize(self, loss, global_step, var_list=None):
    parts = var_list or [v for v in tf1.trainable_variables() if (
        tf1.gradients(loss, v)[0] is not None)]
    update = tf.keras.optimizers.legacy.SGD(1.0).apply_gradients(
        zip(tf1.gradients(loss, parts), parts),
        experimental_aggregate_gradients=not self._sums)
    return tf.group(update, global_step.assign_add(1))


@pytest.mark.parametrize('base', ['mirrored', 'cross_shard'])
def test_a_keras_optimizer_that_does_not_say_what_it_updates(behavior, base):
  """It sums nothing, so the end of the group is not known; see the message."""

  def worker(sums, trained):
    return strategy_worker.StrategyWorker(
        distribute.VariableClippingStrategy(BASES[base](), {'^table': 0}, 1.0),
        _model_fn(lambda: _OfKeras(sums), trained))

  with pytest.raises(ValueError, match='Each part of a variable that is clipped'
                     ' across its parts must be updated'):
    worker(True, (0,))
  worker(True, (0, 1)).step()  # What the message says; or:
  worker(False, (0,)).step()
