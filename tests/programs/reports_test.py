# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small programs of the kinds that public reports tell of, in every form.

Who writes a variable beside the optimizer, and who starts it.
"""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import wrapper_forms
from tfplugin import hooks
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1

FORMS = wrapper_forms.FORMS
ELASTIC = ['elastic', 'elastic_strategy', 'elastic_devices',
           'elastic_optimizer']
_estimator = wrapper_forms.estimator
_input_fn = wrapper_forms.input_fn()
_minimize = wrapper_forms.minimize


def _center(form, steps, step, written=lambda w, number: w):
  """The centre after steps that write and communicate, from 0."""
  copy = center = 0.0
  by_hand = form == 'elastic_optimizer'  # What follows an optimizer is later.
  for number in range(1, steps + 1):
    copy = step(copy) if by_hand else written(step(copy), number)
    difference = wrapper_forms.MOVING_RATE * (copy - center)
    copy -= difference
    center += difference * (2 if form == 'elastic_devices' else 1)
    copy = written(copy, number) if by_hand else copy
  return center


def _by_hand(model_fn, model_dir):
  """Puts an ElasticAverageOptimizer into a model_fn, as in ends_program.py."""

  def with_optimizer(features, labels, mode):
    getter = tfplugin.ElasticAverageCustomGetter('')
    made = []

    def minimize(loss, rate):
      made.append(tfplugin.ElasticAverageOptimizer(
          tf1.train.GradientDescentOptimizer(rate), 1, getter,
          communication_period=1, moving_rate=wrapper_forms.MOVING_RATE,
          rho=0.0))
      return made[0].minimize(loss, tf1.train.get_global_step())

    with getter.scope():
      spec = model_fn(features, labels, mode, minimize)
    saver = made[0].swapping_saver()
    return spec._replace(
        scaffold=tf1.train.Scaffold(saver=saver),
        training_hooks=[made[0].make_session_run_hook(True, 0)],
        training_chief_hooks=[hooks.ElasticCheckpointHook(
            made[0], str(model_dir), saver, save_steps=10**6)])

  return with_optimizer


def _elastic_estimator(form, model_fn, model_dir):
  """Returns an Estimator; `model_fn` is handed the function that minimizes."""
  if form == 'elastic_optimizer':
    return _estimator('', _by_hand(model_fn, model_dir), model_dir)
  return _estimator(form, lambda features, labels, mode: model_fn(
      features, labels, mode, _minimize), model_dir)


@pytest.mark.sampled(8)
@pytest.mark.parametrize('is_before', [True, False], ids=['before', 'after'])
@pytest.mark.parametrize('form', FORMS)
def test_an_initialization_of_a_programs_own(
    form, is_before, tmp_path, behavior):
  """It knows the local variables at the time that it is made at most."""
  del behavior

  def make_model_fn(has_own):
    def model_fn(features, labels, mode):
      del labels
      w = tf1.get_variable('w', initializer=[[1.0]])
      scale = tf1.get_variable('scale', initializer=1.0, trainable=False)
      count = tf1.get_variable(
          'count', initializer=0.0, trainable=False,
          collections=[tf1.GraphKeys.LOCAL_VARIABLES])
      own = tf1.local_variables_initializer()
      update = _minimize(scale * tf.reduce_mean((features @ w) ** 2), 0.125)
      if not is_before:
        own = tf1.local_variables_initializer()
      return tf1.estimator.EstimatorSpec(
          mode, loss=tf.reduce_mean(features @ w) + count,
          train_op=update, scaffold=tf1.train.Scaffold(
              local_init_op=own if has_own else None))

    return model_fn

  found = []
  for has_own in (False, True):
    estimator = _estimator(
        form, make_model_fn(has_own), tmp_path / str(has_own))
    estimator.train(_input_fn, max_steps=3)
    found.append(estimator.get_variable_value('w'))
  np.testing.assert_array_equal(*found)
  assert 0 < found[0] < 1


@pytest.mark.parametrize('form', ELASTIC)
def test_a_target_network_is_averaged_as_the_copy_that_follows(
    form, tmp_path, behavior):
  """The step copies the trained variable in each second step."""
  del behavior

  def model_fn(features, labels, mode, minimize):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    target = tf1.get_variable('target', initializer=0.0, trainable=False)
    with tf1.control_dependencies([
        minimize(w * tf.reduce_mean(features), 1.0)]):
      follow = tf.cond(
          tf.equal(tf1.train.get_global_step().read_value() % 2, 0),
          lambda: tf.group(target.assign(w.read_value())), tf.no_op)
    return tf1.estimator.EstimatorSpec(
        mode, loss=w * 1.0, train_op=tf.group(follow))

  estimator = _elastic_estimator(form, model_fn, tmp_path)
  estimator.train(_input_fn, max_steps=4)
  copies = []
  center = _center(form, 4, lambda w: w - 1.0,
                   written=lambda w, number: copies.append(w) or w)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), center, rtol=1e-6)
  # By hand the target is no statistic: its last value is shared, in step 3.
  target = copies[1] if form == 'elastic_optimizer' else _center(
      form, 4, lambda t: t, written=lambda t, number: (
          t if number % 2 else copies[number - 1]))
  np.testing.assert_allclose(
      estimator.get_variable_value('target'), target, rtol=1e-6)


def _clipped(w):
  return tf.clip_by_value(w, -0.5, 0.5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('constraint', [None, _clipped])
@pytest.mark.parametrize('form', ELASTIC)
def test_weights_that_the_step_clips_stay_in_range(
    form, constraint, tmp_path, behavior):
  """A critic's; the centre lies between clipped copies."""
  del behavior

  def model_fn(features, labels, mode, minimize):
    del labels
    w = tf1.get_variable('w', initializer=0.0, constraint=constraint)
    update = minimize(w * tf.reduce_mean(features), 0.125)
    with tf1.control_dependencies([update]):
      clip = update if constraint else tf.group(
          w.assign(_clipped(w.read_value())))
    return tf1.estimator.EstimatorSpec(mode, loss=w * 1.0, train_op=clip)

  estimator = _elastic_estimator(form, model_fn, tmp_path)
  estimator.train(_input_fn, max_steps=30)
  w = estimator.get_variable_value('w')
  if form != 'elastic_optimizer' or constraint:
    assert -0.5 <= w < -0.375
  else:
    np.testing.assert_allclose(w, _center(
        form, 30, lambda w: w - 0.125,
        written=lambda w, number: max(w, -0.5)), rtol=1e-5)
    assert w < -0.5  # The centre has the values before they are clipped.


def _constant_loss(features, labels, mode):
  del labels
  loss = tf1.get_variable('w', initializer=1.0) * tf.reduce_mean(features)
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=_minimize(loss))


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', FORMS)
def test_two_hooks_that_stop_early(form, tmp_path):
  """One for each of two metrics, as of a model with two heads."""
  estimator = _estimator(
      form, _constant_loss, tmp_path, save_checkpoints_steps=5)
  tf.io.gfile.makedirs(estimator.eval_dir())
  hooks = [tf.estimator.experimental.stop_if_no_decrease_hook(
      estimator, 'loss', max_steps_without_decrease=patience,
      run_every_secs=None, run_every_steps=5) for patience in (4, 40)]
  cluster_training.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(_input_fn, max_steps=60, hooks=hooks),
      tf.estimator.EvalSpec(_input_fn, steps=1, start_delay_secs=0,
                            throttle_secs=0))
  assert 5 < estimator.get_variable_value('global_step') < 20


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', FORMS)
def test_a_hook_that_stops_early_takes_its_defaults(form, tmp_path):
  """It asks each minute; the file of metrics has the loss that is too high."""
  estimator = _estimator(
      form, _constant_loss, tmp_path, save_checkpoints_steps=5)
  tf.io.gfile.makedirs(estimator.eval_dir())
  for steps in (5, 10, 60):
    estimator.train(_input_fn, max_steps=steps, hooks=[
        tf.estimator.experimental.stop_if_no_decrease_hook(
            estimator, 'loss', max_steps_without_decrease=4)])
    estimator.evaluate(_input_fn, steps=1)
  assert 10 < estimator.get_variable_value('global_step') < 20


@pytest.mark.sampled(3)
@pytest.mark.parametrize('form', FORMS)
def test_a_part_of_the_model_is_pretrained(form, tmp_path, behavior):
  """A hook finds the variables by their names, as programs do."""
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    body = tf1.get_variable('body/w', initializer=[[5.0]])
    session.run(body.initializer)
    path = tf1.train.Saver([body]).save(session, str(tmp_path / 'pretrained'))

  class Restore(tf1.train.SessionRunHook):

    def begin(self):
      self.saver = tf1.train.Saver([
          v for v in tf1.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
          if v.op.name == 'body/w'])

    def after_create_session(self, session, coord):
      self.saver.restore(session, path)

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('body/w', initializer=[[0.0]])
    head = tf1.get_variable('head/w', initializer=[[2.0]])
    loss = tf.reduce_mean(features @ w @ head)
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=_minimize(loss))

  estimator = _estimator(form, model_fn, tmp_path / 'model')
  estimator.train(_input_fn, max_steps=3, hooks=[Restore()])
  assert estimator.get_variable_value('body/w') == 5.0
  assert estimator.get_variable_value('head/w') == 2.0


class _Counting(tf1.train.SessionRunHook):
  """Counts steps in a variable that it makes when the model is built."""

  def begin(self):
    count = tf1.get_variable('calls', initializer=0.0, trainable=False)
    self._add = count.assign_add(1.0)

  def after_run(self, run_context, run_values):
    run_context.session.run(self._add)


@pytest.mark.sampled(3)
@pytest.mark.parametrize('form', FORMS)
def test_a_hook_saves_a_variable_of_its_own(form, tmp_path, behavior):
  del behavior
  estimator = _estimator(form, _constant_loss, tmp_path)
  estimator.train(_input_fn, max_steps=3, hooks=[_Counting()])
  assert estimator.get_variable_value('calls') == 3.0
