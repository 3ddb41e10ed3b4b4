# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a model_fn that is built once and split."""

import gc
import logging
import weakref

import pytest
import tensorflow as tf

from tfplugin.estimator import replicate

tf1 = tf.compat.v1


def _build(use, devices=2):
  """Returns the spec of a model that returns what `use` makes of rows."""
  x = tf1.placeholder_with_default([[1.], [2.], [6.]], [None, 1])
  return replicate.replicate_model_fn(
      lambda features: use(features),
      devices=[f'/cpu:{i}' for i in range(devices)])(x, None, 'infer')


def test_the_outputs_of_a_spec_have_all_rows(behavior):
  export = tf.estimator.export

  def use(x):
    return tf.estimator.EstimatorSpec(
        'infer', predictions={'a': x * 2}, export_outputs={
            'c': export.ClassificationOutput(x * 3, tf.as_string(x)),
            'r': export.RegressionOutput(x[:, 0] * 4),
            'serving_default': export.PredictOutput({'p': x * 5})})

  with tf.Graph().as_default() as graph, tf1.Session() as session:
    spec = _build(use)
    outputs = spec.export_outputs
    found = session.run([
        spec.predictions['a'], outputs['c'].scores, outputs['r'].value,
        outputs['serving_default'].outputs['p']])
    assert [value.ravel().tolist() for value in found] == [
        [factor * x for x in (1, 2, 6)] for factor in (2, 3, 4, 5)]
    assert graph.get_operation_by_name('tower_1/mul').device.endswith('CPU:1')


def test_the_loss_has_its_name(behavior):
  def use(x):
    return tf.estimator.EstimatorSpec('eval', loss=tf.reduce_max(x))

  for devices in (1, 2):
    with tf.Graph().as_default(), tf1.Session() as session:
      spec = _build(use, devices)
      assert spec.loss.name == 'loss:0'
      assert session.run(spec.loss) == 6


def test_what_is_no_spec_is_refused():
  with tf.Graph().as_default(), pytest.raises(TypeError, match='EstimatorSpec'):
    _build(tf.reduce_sum)


def test_ops_that_are_not_split_are_told_of(caplog):
  def use(x):
    v = tf1.get_variable('v', [2, 1])
    return tf.estimator.EstimatorSpec('eval', loss=tf.reduce_sum(
        tf.tensor_scatter_nd_add(v, tf.cast(x > 1, tf.int32), x)))

  with tf.Graph().as_default(), caplog.at_level(logging.WARNING, 'tensorflow'):
    _build(use)
  assert 'run once' in caplog.text
  assert 'TensorScatterAdd (TensorScatterAdd)' in caplog.text


@pytest.mark.parametrize('devices', (1, 2))
def test_gradients_that_are_taken_later_go_through_the_towers(
    behavior, devices):
  made = []

  def use(x):
    w = tf1.get_variable('w', initializer=[[3.]])
    made.extend([w, x, x @ w])
    return tf.estimator.EstimatorSpec(
        'eval', loss=tf.reduce_sum(tf.square(made[2])))

  with tf.Graph().as_default(), tf1.Session() as session:
    found = tf.gradients(_build(use, devices).loss, made)
    session.run(tf1.global_variables_initializer())
    by_w, by_x, by_hidden = session.run(found)
  # The hidden values are 3, 6 and 18.
  assert by_hidden[:, 0].tolist() == [6, 12, 36]
  assert by_x[:, 0].tolist() == [18, 36, 108]
  assert by_w.tolist() == [[246]]


def test_gradients_of_two_models_go_through_the_towers_of_both(behavior):
  made = []

  def use(features):
    made.append(features * (len(made) + 2.))
    return tf.estimator.EstimatorSpec(
        'eval', loss=tf.reduce_sum(tf.square(made[-1])))

  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default([[1.], [2.], [6.]], [None, 1])
    model_fn = replicate.replicate_model_fn(use, devices=['/cpu:0', '/cpu:1'])
    losses = [model_fn(x, None, 'eval').loss for _ in range(2)]
    found = session.run(tf.gradients(losses, [*made, x]))
    apart = session.run([tf.gradients(loss, x)[0] for loss in losses])
  # The hidden values are 2 x and 3 x.
  assert [g[:, 0].tolist() for g in found] == [
      [4, 8, 24], [6, 12, 36], [26, 52, 156]]
  assert [g[:, 0].tolist() for g in apart] == [[8, 16, 48], [18, 36, 108]]


def test_a_graph_with_towers_ends():
  with tf.Graph().as_default() as graph:
    _build(lambda x: tf.estimator.EstimatorSpec(
        'eval', loss=tf.reduce_sum(tf.exp(x))))
    # That of another graph is TensorFlow's.
    with tf.Graph().as_default(), tf1.Session() as session:
      x = tf.constant(3.)
      assert session.run(tf.gradients(x * x, x)) == [6.]
  graph = weakref.ref(graph)
  gc.collect()
  assert graph() is None
