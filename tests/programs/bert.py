# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The shape of BERT's programs: an optimizer of their own, and a step of it.

The optimizer overrides `apply_gradients`, keeps its moments in variables that
it makes with `get_variable`, and assigns to everything by itself. The step is
advanced beside the update, in no order with it, and the gradients come from
`tf.gradients`, clipped by their global norm.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.programs import by_hand
from tests.programs import forms

tf1 = tf.compat.v1

_NUM_WORDS, _WIDTH = 7, 3
_RATE = 0.05


class DecayedAdam(tf1.train.Optimizer):
  """Adam without bias correction; the decay is beside the gradient."""

  def __init__(self, rate, decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6):
    super().__init__(False, 'DecayedAdam')
    self.rate, self.decay = rate, decay
    self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    updates = []
    for gradient, variable in grads_and_vars:
      if gradient is None or variable is None:
        continue
      gradient = tf.convert_to_tensor(gradient)
      base = variable.name.split(':')[0]
      mean, square = (tf1.get_variable(
          f'{base}/{slot}', variable.shape.as_list(), tf.float32,
          tf1.zeros_initializer(), trainable=False)
                      for slot in ('adam_m', 'adam_v'))
      new_mean = self.beta1 * mean + (1 - self.beta1) * gradient
      new_square = self.beta2 * square + (1 - self.beta2) * gradient**2
      update = new_mean / (tf.sqrt(new_square) + self.epsilon)
      if 'bias' not in base:
        update += self.decay * variable
      updates += [variable.assign(variable - self.rate * update),
                  mean.assign(new_mean), square.assign(new_square)]
    return tf.group(*updates, name=name)


def create_optimizer(loss):
  """Returns the train_op.

  The rate is fixed: one of the step, which is advanced in no order with its
  reading, would differ from run to run.
  """
  step = tf1.train.get_or_create_global_step()
  optimizer = DecayedAdam(_RATE)
  variables = tf1.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf1.gradients(loss, variables), 1.0)
  train_op = optimizer.apply_gradients(
      zip(gradients, variables), global_step=step)
  # The optimizer does not advance the step that it is given.
  return tf.group(train_op, [step.assign(step + 1)])


def model_fn(features, labels, mode):
  """Guesses a number from words; returns an EstimatorSpec."""
  table = tf1.get_variable(
      'word_embeddings', [_NUM_WORDS, _WIDTH],
      initializer=tf1.constant_initializer(
          np.linspace(-0.5, 0.5, _NUM_WORDS * _WIDTH).reshape(-1, _WIDTH)))
  hidden = tf.reduce_mean(tf.gather(table, features), axis=1)
  hidden = tf1.layers.dense(
      hidden, _WIDTH, tf.tanh, name='dense', kernel_initializer=(
          tf1.constant_initializer(np.linspace(-1, 1, 9).reshape(3, 3))))
  output = tf1.layers.dense(
      hidden, 1, name='output',
      kernel_initializer=tf1.constant_initializer(0.5))
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, {'number': output})
  loss = tf.reduce_mean(tf.square(output - labels))
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf.estimator.EstimatorSpec(mode, loss=loss)
  train_op = create_optimizer(loss)
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def dataset(rows):
  """Four words and a number in each of four rows, repeated."""
  words = np.array([[0, 1, 2, 3], [4, 5, 6, 0], [1, 1, 1, 5], [2, 6, 3, 3]])
  numbers = np.array([[1.0], [-1.0], [0.5], [2.0]], np.float32)
  return tf.data.Dataset.from_tensor_slices((words, numbers)).batch(
      rows).repeat()


def _halves(rule):
  """Sums the gradients of two halves, each clipped alone."""

  def build(features, labels):
    gradients = []
    with tf1.variable_scope('', reuse=tf1.AUTO_REUSE):
      for x, y in zip(tf.split(features, 2), tf.split(labels, 2)):
        loss = model_fn(x, y, tf.estimator.ModeKeys.EVAL).loss
        own = tf1.gradients(loss, tf1.trainable_variables())
        gradients.append([tf.convert_to_tensor(g) for g in
                          tf.clip_by_global_norm(own, 1.0)[0]])
    return DecayedAdam(_RATE).apply_gradients(
        zip([tf.add_n(parts) for parts in zip(*gradients)],
            tf1.trainable_variables()))

  return by_hand.run_by_hand(build, rule)


PROGRAM = by_hand.Program(
    model_fn, dataset, state='adam_', rules={'word_embeddings': 1, 'kernel': 0},
    max_norm=0.6, own_steps=True, splits={'shards': _halves},
    formulas={'shards': 'the sum of gradients that each half clips by itself'},
    refused={
        name: by_hand.Refused(
            'must write a value that all shards have in',
            'each shard would assign its own value to a shared variable')
        for name, form in forms.FORMS.items() if form.is_tpu})
