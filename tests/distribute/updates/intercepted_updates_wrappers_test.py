# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrappers that a program writes around an optimizer, in each form."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator

tf1 = tf.compat.v1


class _Wrapper(tf1.train.Optimizer):
  """Holds an optimizer, in a field of no common name."""

  def __init__(self, name='wrapper'):
    super().__init__(False, name)
    self.base = tf1.train.MomentumOptimizer(0.25, 0.5)

  def compute_gradients(self, *args, **kwargs):
    return self.base.compute_gradients(*args, **kwargs)

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    return self.base.apply_gradients(grads_and_vars, global_step, name)

  def state(self, variable, name):
    return tf1.get_variable(f'{variable.op.name}/{name}', variable.shape,
                            initializer=tf1.zeros_initializer(),
                            trainable=False)


class Clipped(_Wrapper):
  """Clips the norm of all gradients."""

  def compute_gradients(self, *args, **kwargs):
    gradients, variables = zip(*super().compute_gradients(*args, **kwargs))
    return list(zip(tf.clip_by_global_norm(gradients, 0.5)[0], variables))


class Trusting(_Wrapper):
  """Scales each gradient by the norm of its variable, as LARS does."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    return super().apply_gradients(
        [(g * tf.norm(v) / tf.norm(g), v) for g, v in grads_and_vars],
        global_step, name)


class Accumulating(_Wrapper):
  """Applies the sum of the gradients of two steps, in a branch."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    count = tf1.get_variable('count', [], tf.int32, trainable=False,
                             initializer=tf1.zeros_initializer())
    sums = [self.state(v, 'sum') for _, v in grads_and_vars]
    with tf.control_dependencies(
        [s.assign_add(g) for s, (g, _) in zip(sums, grads_and_vars)]):
      now = count.assign_add(1)

    def apply():
      with tf.control_dependencies([self.base.apply_gradients(
          [(s.read_value(), v) for s, (_, v) in zip(sums, grads_and_vars)])]):
        return tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])

    with tf.control_dependencies([tf.cond(
        tf.equal(now % 2, 0), apply, tf.no_op)]):
      return tf.group(global_step.assign_add(1))


class Averaging(_Wrapper):
  """Assigns an average of the weights after the update."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    with tf.control_dependencies([
        super().apply_gradients(grads_and_vars, global_step, name)]):
      averages = [(self.state(v, 'average'), v) for _, v in grads_and_vars]
      return tf.group(*[a.assign(0.5 * a + 0.5 * v.read_value())
                        for a, v in averages])


class Checking(_Wrapper):
  """Applies gradients that are finite, as a loss scale does."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    good = tf.reduce_all([
        tf.reduce_all(tf.math.is_finite(g)) for g, _ in grads_and_vars])
    return tf.cond(good, lambda: tf.group(self.base.apply_gradients(
        grads_and_vars, global_step)), tf.no_op)


class Decaying(tf1.train.MomentumOptimizer):
  """Assigns decayed weights after the update."""

  def __init__(self):
    super().__init__(0.25, 0.5)

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    with tf.control_dependencies([
        super().apply_gradients(grads_and_vars, global_step, name)]):
      return tf.group(*[
          v.assign_sub(0.5 * v.read_value()) for _, v in grads_and_vars])


def _assigning(base, *args):
  """An optimizer that assigns, of a class derived from `base`."""
  class Assigning(base):
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
      updates = [v.assign(v - 0.25 * g) for g, v in grads_and_vars]
      return tf.group(*updates, global_step.assign_add(1))

  return Assigning(*args)


WRAPPERS = (Clipped, Trusting, Accumulating, Averaging, Checking)
STRATEGIES = {
    'drop stale': lambda: distribute.DropStaleGradientStrategy(
        staleness=9, on_nonfinite='drop'),
    'clip': lambda: distribute.VariableClippingStrategy(
        tf.distribute.OneDeviceStrategy('/cpu:0'), {'w': 0}, 1e6),
    'cross shard': lambda: distribute.CrossShardStrategy(['/cpu:0']),
    # The centre gets the whole difference, in one step.
    'elastic': lambda: distribute.ElasticAverageStrategy(
        communication_period=1, moving_rate=1.0, count_steps='local'),
}
DECORATORS = {
    'drop stale': lambda model_fn: estimator.drop_stale_gradients(
        model_fn, staleness=9, on_nonfinite='drop'),
    'clip': lambda model_fn: estimator.clip_variables(
        model_fn, rules={'w': 0}, max_norm=1e6),
    'elastic': lambda model_fn: estimator.elastic_average(
        model_fn, communication_period=1, moving_rate=1.0),
}


def _model_fn(make_optimizer):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[0.5], [-0.25]])
    b = tf1.get_variable('b', initializer=[0.125])
    loss = tf.reduce_mean(tf.square(features @ w + b - labels))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=make_optimizer().minimize(
            loss, tf1.train.get_global_step()))
  return model_fn


def _train(model_fn, model_dir, steps, strategy=None):
  """Returns the variables of the checkpoint after `steps`."""
  features = np.float32([[1, 2], [3, -1], [0.5, 1], [2, 2]])
  trained = tf.estimator.Estimator(
      model_fn, str(model_dir),
      tf.estimator.RunConfig(train_distribute=strategy))
  trained.train(lambda: tf.data.Dataset.from_tensors(
      (features, np.float32([[1], [2], [0], [3]]))).repeat(), steps=steps)
  return {name: trained.get_variable_value(name)
          for name in trained.get_variable_names()
          if name not in ('global_step', 'stale_counter', 'local_step')}


def _compare(make_optimizer, form, tmp_path, forms):
  steps = 1 if form == 'elastic' else 4
  plain = _model_fn(make_optimizer)
  expected = _train(plain, tmp_path / 'plain', steps)
  found = (_train(plain, tmp_path / 'form', steps, forms[form]())
           if forms is STRATEGIES else
           _train(forms[form](plain), tmp_path / 'form', steps))
  assert set(expected) <= set(found)
  averaged = [name for name in expected if form != 'elastic' or '/' not in name]
  for name in averaged:
    np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.parametrize('form', STRATEGIES)
@pytest.mark.parametrize('make_optimizer', WRAPPERS)
def test_a_strategy_trains_as_one_device(
    behavior, make_optimizer, form, tmp_path):
  _compare(make_optimizer, form, tmp_path, STRATEGIES)


@pytest.mark.parametrize('form', DECORATORS)
@pytest.mark.parametrize('make_optimizer', WRAPPERS)
def test_a_decorator_trains_as_one_device(
    behavior, make_optimizer, form, tmp_path):
  _compare(make_optimizer, form, tmp_path, DECORATORS)


@pytest.mark.parametrize('make_optimizer', [
    Trusting, Accumulating, Averaging, Checking, Decaying])
def test_shards_give_a_wrapper_the_sum_of_the_gradients(
    behavior, make_optimizer, tmp_path):
  plain = _model_fn(make_optimizer)
  expected = _train(plain, tmp_path / 'plain', 4)
  found = _train(estimator.cross_shard(plain, devices=['/cpu:0'] * 2),
                 tmp_path / 'form', 4)
  assert set(expected) == set(found)
  for name, value in expected.items():  # The sums have another order.
    np.testing.assert_allclose(found[name], value, 1e-5, 1e-5, err_msg=name)


def test_the_refusal_of_an_assignment_has_a_remedy(behavior, tmp_path):
  with pytest.raises(ValueError, match=(
      r'clips .*must intercept every write.* \(Assign\w*\) writes `[wb]:0`.*'
      'Derive .* from `tf.compat.v1.train.Optimizer` itself')):
    _train(_model_fn(lambda: _assigning(tf1.train.AdamOptimizer)), tmp_path, 1,
           STRATEGIES['clip']())
  _compare(lambda: _assigning(tf1.train.Optimizer, False, 'assigning'), 'clip',
           tmp_path, STRATEGIES)


@pytest.mark.parametrize('forms', [STRATEGIES, DECORATORS])
@pytest.mark.parametrize('make_optimizer', [
    Accumulating, Averaging, Decaying])
def test_a_dropped_step_drops_all_that_an_optimizer_writes(
    behavior, make_optimizer, forms, tmp_path):
  plain, strategy = _model_fn(make_optimizer), None
  if forms is STRATEGIES:
    strategy = forms['drop stale']()
  else:
    plain = forms['drop stale'](plain)
  before = _train(plain, tmp_path, 3, strategy)
  # Estimator counts steps by the global step, which a dropped step leaves.
  estimator_lib = tf.estimator.Estimator(
      plain, str(tmp_path), tf.estimator.RunConfig(train_distribute=strategy))
  estimator_lib.train(lambda: tf.data.Dataset.from_tensors(
      # The loss is infinite, and so is the gradient.
      (np.full([4, 2], [1e30, 0], np.float32),
       np.zeros([4, 1], np.float32))).repeat(2))
  after = {name: estimator_lib.get_variable_value(name) for name in before}
  for name, value in before.items():
    np.testing.assert_array_equal(after[name], value, name)
  assert estimator_lib.get_variable_value('global_step') == 3
