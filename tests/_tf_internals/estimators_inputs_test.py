# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs of Estimators are found where TensorFlow has them."""

from __future__ import annotations

import copy

import tensorflow as tf

from tfplugin import _tf_internals


def test_inputs_go_through_a_function(tmp_path):
  read = []

  def input_fn(params):
    return tf.data.Dataset.from_tensors(params['size']).repeat(3)

  def model_fn(features, mode, params):
    del params
    step = tf.compat.v1.train.get_global_step().assign_add(1)
    with tf.control_dependencies([tf.py_function(read.append, [features], [])]):
      return tf.estimator.EstimatorSpec(
          mode, loss=tf.constant(0.0), train_op=tf.identity(step))

  estimator = tf.estimator.Estimator(
      model_fn, str(tmp_path), params={'size': 7})
  with _tf_internals.inputs_through(estimator, lambda data: data.take(2)):
    estimator.train(input_fn)
  assert [int(size) for size in read] == [7, 7]
  estimator.train(input_fn)
  assert len(read) == 5


def test_the_inputs_of_a_deep_copy_get_its_own_configuration(tmp_path):
  """TensorFlow's coordinator of strategies trains such a copy."""
  seen = []

  def input_fn(config, params):
    seen.append((config.task_type, config.task_id, params))
    return tf.data.Dataset.range(3)

  estimator = tf.estimator.Estimator(
      lambda features, params: None, str(tmp_path), params={'size': 7})
  with _tf_internals.inputs_through(estimator, lambda data: data.take(2)), (
      _tf_internals.inputs_through(estimator, lambda data: data.skip(1))):
    copied = copy.deepcopy(estimator)
    copied._config._task_type, copied._config._task_id = 'worker', 1
    copied._params['size'] = 8
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      for each in (copied, estimator):
        data = each._call_input_fn(input_fn, 'train')
        # The first two of 0, 1 and 2, then without the first.
        assert session.run(data.cardinality()) == 1
  assert seen == [('worker', 1, {'size': 8}), ('worker', 0, {'size': 7})]
