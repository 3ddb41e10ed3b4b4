# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The shape of wide_deep: a canned estimator's model_fn, and two optimizers.

Its embedding is in two parts. The estimator sums its loss, or takes the mean.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand

tf1 = tf.compat.v1

_SUM = tf1.losses.Reduction.SUM
_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE
_NUM_JOBS, _WIDTH = 5, 2
# Rows that no example touches are not clipped: they begin within the bound.
_MAX_NORM = 0.375


def _columns():
  column = tf.feature_column
  job = column.categorical_column_with_identity('job', _NUM_JOBS)
  age = column.numeric_column('age')
  embedding = column.embedding_column(
      job, _WIDTH, initializer=lambda shape, **kwargs: tf.fill(shape, -0.25))
  return [job], [age, embedding]


def _begins_without_seed(next_creator, **kwargs):
  """Canned layers draw their kernels at random, and take no initializer."""
  if kwargs.get('trainable') and 'kernel' in kwargs['name']:
    shape = kwargs['initial_value']().shape.as_list()
    values = np.sin(np.arange(1.0, 1 + np.prod(shape))).reshape(shape)
    kwargs['initial_value'] = lambda: tf.constant(values, tf.float32)
  return next_creator(**kwargs)


def _model_fn(features, labels, mode, reduction):
  """Guesses an income; returns an EstimatorSpec."""
  linear, deep = _columns()
  canned = tf1.estimator.DNNLinearCombinedClassifier(
      linear_feature_columns=linear,
      linear_optimizer=tf1.train.FtrlOptimizer(
          0.2, l1_regularization_strength=0.01),
      dnn_feature_columns=deep,
      dnn_optimizer=tf1.train.AdagradOptimizer(0.1),
      dnn_hidden_units=[2], dnn_activation_fn=tf.tanh,
      input_layer_partitioner=tf1.min_max_variable_partitioner(
          max_partitions=2, min_slice_size=4 * _NUM_JOBS),
      loss_reduction=reduction)
  with tf1.variable_creator_scope(_begins_without_seed):
    return canned.model_fn(features, labels, mode, canned.config)


def dataset(rows):
  """Four people, repeated."""
  people = {'job': np.array([[0], [1], [4], [1]], np.int64),
            'age': np.array([[0.5], [1.5], [-1.0], [2.0]], np.float32)}
  return tf.data.Dataset.from_tensor_slices(
      (people, [[0], [1], [1], [0]])).batch(rows).repeat()


def _program(reduction):

  def model_fn(features, labels, mode):
    return _model_fn(features, labels, mode, reduction)

  return by_hand.Program(
      model_fn, dataset, state='Ftrl|Adagrad',
      rules={'embedding_weights': 1}, max_norm=_MAX_NORM, own_steps=True)


SUM_PROGRAM = _program(_SUM)
MEAN_PROGRAM = _program(_MEAN)
