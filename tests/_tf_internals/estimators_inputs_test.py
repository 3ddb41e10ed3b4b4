# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs of Estimators are found where TensorFlow has them."""

from __future__ import annotations

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
