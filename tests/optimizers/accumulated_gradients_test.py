# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of applying accumulated gradients behind a gate, and with a clip."""

import threading

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
import tfplugin.distribute
import tfplugin.estimator
from tests.helpers import strategy_worker

tf1 = tf.compat.v1
_LIMIT = 30  # seconds; a wait that lasts longer is a failure
_START = [[3.0, 4.0], [0.0, 0.5]]


def make_model_fn(wrap=lambda optimizer: optimizer, held=None):
  """Adds up two gradients of `weight * factor`, and applies their mean."""

  def model_fn(features, labels, mode):
    del features, labels
    weight = tf1.get_variable('weight', initializer=_START)
    total, count = (tf1.get_variable(
        name, initializer=value, trainable=False, use_resource=True)
                    for name, value in (('total', tf.zeros([2, 2])),
                                        ('count', 0)))
    # 2, 4, 6, ... with the number of the micro-step.
    factor = 2.0 * tf.cast(count.read_value() + 1, tf.float32)
    if held is not None:
      factor *= held()
    loss = tf.reduce_sum(weight * factor)
    gradient, = tf.gradients(loss, weight)
    optimizer = wrap(tf1.train.GradientDescentOptimizer(0.125))
    with tf.control_dependencies([gradient]):
      added = total.assign_add(gradient, read_value=False)
    with tf.control_dependencies([added]):
      number = tf.identity(count.assign_add(1))

    def apply():
      update = optimizer.apply_gradients(
          [(total.read_value() / 2.0, weight)],
          tf1.train.get_or_create_global_step())
      with tf.control_dependencies([update]):
        reset = total.assign(tf.zeros([2, 2]), read_value=False)
      with tf.control_dependencies([reset]):
        return tf.constant(True)

    with tf.control_dependencies([number]):
      applied = tf.cond(tf.equal(number % 2, 0), apply,
                        lambda: tf.constant(False))
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(applied))

  return model_fn


class _PlainWorker:
  """Steps a model_fn without a strategy."""

  def __init__(self, model_fn):
    with tf.Graph().as_default():
      tf1.train.create_global_step()
      self._train_op = model_fn(None, None, 'train').train_op
      self._reads = {v.op.name: v.read_value()
                     for v in tf1.global_variables()}
      self.session = tf1.Session()
      self.session.run([tf1.global_variables_initializer(),
                        tf1.local_variables_initializer()])

  def step(self):
    self.session.run(self._train_op)

  def value(self, name):
    return self.session.run(self._reads[name])

  def run(self, fetches):
    return self.session.run(fetches)


class _StrategyWorker(strategy_worker.StrategyWorker):
  """Steps a model_fn in a strategy."""

  def run(self, fetches):
    return self.session.run_step_fn(
        lambda step_context: step_context.session.run(fetches))


def _worker(strategy, model_fn):
  return (_PlainWorker(model_fn) if strategy is None else
          _StrategyWorker(strategy, model_fn))


def _drop(optimizer):
  return tfplugin.DropStaleGradientOptimizer(optimizer, 0)


def _clip(optimizer):
  return tfplugin.VariableClippingOptimizer(optimizer, {'weight': 1}, 1.0)


_RULES = ({'weight': 1}, 1.0)
_FORMS = {
    'drop optimizer': lambda held=None: (None, make_model_fn(_drop, held)),
    'drop decorator': lambda held=None: (None, _decorated(
        tfplugin.estimator.drop_stale_gradients, held, staleness=0)),
    'drop strategy': lambda held=None: (
        tfplugin.distribute.DropStaleGradientStrategy(staleness=0),
        make_model_fn(held=held)),
    'clip optimizer': lambda: (None, make_model_fn(_clip)),
    'clip decorator': lambda: (None, _decorated(
        tfplugin.estimator.clip_variables, rules=_RULES[0],
        max_norm=_RULES[1])),
    'clip strategy, one device': lambda: (
        _over(tf1.distribute.OneDeviceStrategy('/cpu:0')), make_model_fn()),
    'clip strategy, mirrored': lambda: (
        _over(tf1.distribute.MirroredStrategy(['/cpu:0'])), make_model_fn()),
    'clip strategy, ps': lambda: (
        _over(tf1.distribute.experimental.ParameterServerStrategy()),
        make_model_fn()),
    'clip strategy, drop': lambda: (
        _over(tfplugin.distribute.DropStaleGradientStrategy(staleness=0)),
        make_model_fn()),
}


def _over(base):
  return tfplugin.distribute.VariableClippingStrategy(base, *_RULES)


def _decorated(decorator, held=None, **kwargs):
  decorated = decorator(make_model_fn(held=held), **kwargs)
  return lambda features, labels, mode: decorated(
      features=features, labels=labels, mode=mode)


@pytest.mark.parametrize('form', _FORMS)
def test_each_second_step_applies_the_mean(behavior, form):
  strategy, model_fn = _FORMS[form]()
  worker = _worker(strategy, model_fn)
  want = np.array(_START)
  for step in range(1, 5):
    worker.step()
    if step % 2 == 0:
      want -= 0.125 * (2.0 * (step - 1) + 2.0 * step) / 2.0
      if 'clip' in form:
        want /= np.maximum(1.0, np.linalg.norm(want, axis=1, keepdims=True))
    np.testing.assert_allclose(worker.value('weight'), want, rtol=1e-6)
    assert worker.value('global_step') == step // 2
  if form == 'drop strategy':
    assert worker.value('stale_gradients/num_applied') == 2
    assert worker.value('stale_gradients/num_dropped') == 0


class _Held:
  """Holds the second micro-step, after its reading of the step."""

  def __init__(self):
    self.calls = 0
    self.reached = threading.Event()
    self.open = threading.Event()

  def __call__(self):
    def hold():
      self.calls += 1
      if self.calls == 2:
        self.reached.set()
        assert self.open.wait(_LIMIT)
      return np.float32(1.0)

    return tf.ensure_shape(tf.numpy_function(hold, [], tf.float32), [])


@pytest.mark.parametrize('late', [0, 1])
@pytest.mark.parametrize('form', ['optimizer', 'decorator', 'strategy'])
def test_the_step_that_applies_may_be_late(behavior, form, late):
  held = _Held()
  strategy, model_fn = _FORMS[f'drop {form}'](held=held)

  def with_others(*args):
    spec = model_fn(*args)
    others.append(tf1.assign_add(tf1.train.get_global_step(), late))
    return spec

  others = []
  worker = _worker(strategy, with_others)
  worker.step()
  second = threading.Thread(target=worker.step)
  second.start()
  try:
    assert held.reached.wait(_LIMIT)
    worker.run(others)
  finally:
    held.open.set()
    second.join(_LIMIT)
  assert not second.is_alive()
  # The mean of 2 and 4, times .125; or nothing.
  np.testing.assert_allclose(
      worker.value('weight'), np.array(_START) - (0.0 if late else 0.375))
  assert worker.value('global_step') == 1
