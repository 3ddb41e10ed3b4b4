# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of interceptions: an optimizer is wrapped where it is applied."""

from __future__ import annotations

import threading

import pytest
import tensorflow as tf

from tfplugin.distribute.updates import optimizer_interception
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class Doubling(wrapper.OptimizerWrapper):
  """Doubles gradients; notes where it was called."""

  def __init__(self, opt, factor=2.0):
    super().__init__(opt, False, 'doubling')
    self.factor = factor
    self.in_strategy = None

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    self.in_strategy = tf.distribute.has_strategy()
    return super().apply_gradients(
        [(g if g is None else g * self.factor, v) for g, v in grads_and_vars],
        *args, **kwargs)


class Adding(wrapper.OptimizerWrapper):
  """Adds one to gradients."""

  def __init__(self, opt):
    super().__init__(opt, False, 'adding')

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    return super().apply_gradients(
        [(g + 1.0, v) for g, v in grads_and_vars], *args, **kwargs)


def _sgd():
  return tf1.train.GradientDescentOptimizer(1.0)


def _doubling():
  return optimizer_interception.Interception(Doubling, Doubling)


def _adding():
  return optimizer_interception.Interception(Adding, Adding)


def _moved(build):
  """How far the train_op that `build` makes moves a variable down."""
  with tf.Graph().as_default():
    w = tf1.get_variable('w', initializer=0.0)
    train_op = build(w)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      return -session.run(w)


def test_wraps_and_leaves_no_strategy_around(behavior):
  interception = _doubling()

  def build(w):
    with interception.active():
      assert not tf.distribute.has_strategy()
      return _sgd().minimize(3.0 * w)

  assert _moved(build) == 6.0
  wrapper_made, = interception.wrappers
  assert wrapper_made.in_strategy is False


def test_nothing_happens_outside(behavior):
  interception = _doubling()

  def build(w):
    with interception.active():
      pass
    return _sgd().minimize(3.0 * w)

  assert _moved(build) == 3.0
  assert not interception.wrappers


def test_outer_interception_wraps_what_the_inner_one_made(behavior):
  """3, plus 1 by the outer one, times 2; and the reverse."""

  def build(outer, inner):
    def nested(w):
      with outer.active(), inner.active():
        return _sgd().minimize(3.0 * w)
    return nested

  assert _moved(build(_adding(), _doubling())) == (3 + 1) * 2
  assert _moved(build(_doubling(), _adding())) == 3 * 2 + 1


def test_one_wrapper_for_each_optimizer():
  interception = _doubling()

  def build(w):
    with interception.active():
      first, second = _sgd(), _sgd()
      gradients = [(tf.constant(1.0), w)]
      with tf.control_dependencies([first.apply_gradients(gradients)]):
        with tf.control_dependencies([first.apply_gradients(gradients)]):
          return second.apply_gradients(gradients)

  assert _moved(build) == 3 * 2.0
  assert len(interception.wrappers) == 2


@pytest.mark.parametrize('make', (
    lambda: Doubling(_sgd(), 5.0), lambda: Adding(Doubling(_sgd(), 5.0))))
def test_wrapper_that_is_there_is_honoured(make):
  interception = _doubling()

  def build(w):
    with interception.active():
      return make().minimize(3.0 * w)

  assert _moved(build) in (15.0, (3.0 + 1.0) * 5.0)
  assert not interception.wrappers
  assert len(interception.already_wrapped) == 1


def test_wrapper_of_tensorflow_is_looked_into(behavior):
  class Holder(tf1.train.Optimizer):
    def __init__(self, opt):
      super().__init__(False, 'holder')
      self._opt = opt

  assert optimizer_interception.holds(Holder(Doubling(_sgd())), Doubling)
  assert not optimizer_interception.holds(Holder(_sgd()), Doubling)


def test_inside_a_branch(behavior):
  interception = _doubling()

  def build(w):
    with interception.active():
      def apply():
        with tf.control_dependencies([_sgd().minimize(3.0 * w)]):
          return tf.constant(0)
      return tf1.cond(tf.constant(True), apply, lambda: tf.constant(0))

  assert _moved(build) == 6.0


def test_inside_a_replica():
  interception = _doubling()
  strategy = tf.distribute.MirroredStrategy(
      ['/cpu:0', '/cpu:1'], tf.distribute.ReductionToOneDevice())
  with tf.Graph().as_default(), strategy.scope():
    w = tf1.get_variable('w', initializer=0.0)

    def replica():
      with _doubling().active():
        return _sgd().minimize(3.0 * w)

    train_op = strategy.experimental_local_results(strategy.run(replica))
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(train_op)
      # Two replicas, each with 3, doubled.
      assert session.run(w.read_value()) == -2 * 3 * 2
  with strategy.scope(), pytest.raises(RuntimeError, match='cross-replica'):
    with interception.active():
      pass


def test_optimizer_in_a_strategy_of_the_function_is_left_alone():
  """The function has made its own update of several replicas."""
  interception = _doubling()

  def build(w):
    with interception.active():
      return tf.distribute.OneDeviceStrategy('/cpu:0').run(
          lambda: _sgd().minimize(3.0 * w))

  assert _moved(build) == 3.0
  assert not interception.wrappers


class AssigningOptimizer(tf1.train.Optimizer):
  """Makes its state and assigns by itself, as the optimizer of BERT does."""

  def __init__(self, rate):
    super().__init__(False, 'assigning')
    self.rate = rate

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = []
    for gradient, variable in grads_and_vars:
      total = tf1.get_variable(
          variable.op.name + '/total', initializer=0.0, trainable=False)
      total_now = total + gradient
      updates += [variable.assign(variable - self.rate * total_now),
                  total.assign(total_now)]
    return tf.group(*updates, name=name)


class DecayingOptimizer(tf1.train.GradientDescentOptimizer):
  """Changes the gradients, then calls the method that it overrides."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    return super().apply_gradients(
        [(g + 0.5, v) for g, v in grads_and_vars], global_step, name)


def test_optimizer_that_assigns_by_itself(behavior):
  def build(w):
    with _doubling().active():
      # `zip`, which can be read once.
      return AssigningOptimizer(1.0).apply_gradients(
          zip([tf.constant(3.0)], [w]))

  assert _moved(build) == 6.0


def test_optimizer_that_overrides_is_wrapped_as_a_whole(behavior):
  def build(w):
    with _doubling().active():
      return DecayingOptimizer(1.0).minimize(3.0 * w)

  assert _moved(build) == 2 * 3 + 0.5


def test_class_that_is_defined_inside(behavior):
  def build(w):
    with _doubling().active():

      class Local(DecayingOptimizer):
        def apply_gradients(self, grads_and_vars, *args, **kwargs):
          return super().apply_gradients(
              [(10 * g, v) for g, v in grads_and_vars], *args, **kwargs)

      return Local(1.0).minimize(3.0 * w)

  assert _moved(build) == 10 * 2 * 3 + 0.5


def test_loss_scale_is_wrapped_as_a_whole(behavior):
  interception = _doubling()

  def build(w):
    with interception.active():
      return tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
          _sgd(), 'dynamic').minimize(3.0 * w)

  assert _moved(build) == 6.0
  assert type(interception.wrappers[0]._optimizer) is (
      tf1.mixed_precision.MixedPrecisionLossScaleOptimizer)


def test_wrapper_of_tensorflow_holds_the_optimizer_that_is_met(behavior):
  interception = _doubling()

  class Averaging(tf1.train.Optimizer):
    def __init__(self, opt):
      super().__init__(False, 'averaging')
      self._optimizer = opt

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
      return self._optimizer.apply_gradients(grads_and_vars, global_step, name)

  def build(w):
    with interception.active():
      return Averaging(_sgd()).apply_gradients([(tf.constant(3.0), w)])

  assert _moved(build) == 6.0
  assert type(interception.wrappers[0]._optimizer) is (
      tf1.train.GradientDescentOptimizer)


def test_only_the_optimizers_that_are_asked_for():
  interception = optimizer_interception.Interception(
      Doubling, Doubling, only=lambda o: isinstance(o, AssigningOptimizer))

  def build(w):
    with interception.active():
      first = _sgd().minimize(3.0 * w)
      with tf.control_dependencies([first]):
        return AssigningOptimizer(1.0).minimize(5.0 * w)

  assert _moved(build) == 3 + 2 * 5
  assert len(interception.wrappers) == 1


def test_another_thread_is_left_alone():
  moved = []

  def build(w):
    return _sgd().minimize(3.0 * w)

  with tf.Graph().as_default(), _doubling().active():
    thread = threading.Thread(target=lambda: moved.append(_moved(build)))
    thread.start()
    thread.join()
  assert moved == [3.0]


def test_every_application_is_met_and_methods_are_put_back():
  base = tf1.train.Optimizer
  before = base.apply_gradients, DecayingOptimizer.apply_gradients
  noted = []

  def replacement(apply_gradients, optimizer, *args, **kwargs):
    noted.append(optimizer)
    return apply_gradients(*args, **kwargs)

  plain, overriding = _sgd(), DecayingOptimizer(0.5)
  with tf.Graph().as_default(), pytest.raises(KeyError):
    pairs = [(tf.constant(1.0), tf.Variable(1.0))]
    with optimizer_interception.apply_gradients_replaced(replacement):
      with optimizer_interception.apply_gradients_replaced(replacement):
        plain.apply_gradients(pairs)
      overriding.apply_gradients(pairs)

      class Late(tf1.train.Optimizer):
        def apply_gradients(self, grads_and_vars):
          return 'late'

      late = Late(False, 'late')
      assert late.apply_gradients(pairs) == 'late'
      raise KeyError
  assert noted == [plain, overriding, overriding, late]
  assert (base.apply_gradients, DecayingOptimizer.apply_gradients) == before
  assert late.apply_gradients(pairs) == 'late'
  assert len(noted) == 4
  assert '__init_subclass__' not in vars(base)


def test_the_innermost_context_meets_an_application():
  noted = []
  outer, inner = (lambda *_, name=name: noted.append(name)
                  for name in ('outer', 'inner'))
  with optimizer_interception.apply_gradients_replaced(outer):
    with optimizer_interception.apply_gradients_replaced(inner):
      with optimizer_interception.apply_gradients_replaced(outer):
        _sgd().apply_gradients([])
      _sgd().apply_gradients([])
  assert noted == ['outer', 'inner']
