# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the delegation that the optimizers share."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


def _train(optimizer, steps=3):
  variable = tf1.get_variable('w', initializer=[1.0, 2.0])
  loss = tf.reduce_sum(tf.square(variable))
  train_op = optimizer.minimize(loss)
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(steps):
      session.run(train_op)
    names = sorted(v.op.name for v in tf1.global_variables())
    return session.run(variable), names


def test_wrapper_with_nothing_overridden_equals_bare_optimizer(behavior):
  results = []
  for wrap in (lambda o: o, lambda o: wrapper.OptimizerWrapper(o, False, 'W')):
    with tf.Graph().as_default():
      results.append(_train(wrap(tf1.train.AdamOptimizer(0.1))))
  np.testing.assert_array_equal(results[0][0], results[1][0])
  assert results[0][1] == results[1][1]


@pytest.mark.parametrize('opt, remedy', [
    (tf.keras.optimizers.SGD(), 'Keras optimizers are not supported'),
    (tf1.train.AdamOptimizer, r'`AdamOptimizer\(\.\.\.\)`'),
    (None, 'Pass e.g.'),
])
def test_wrong_optimizer_type_names_the_remedy(opt, remedy):
  with pytest.raises(TypeError, match=f'`opt` must be .* Received: .*{remedy}'):
    wrapper.OptimizerWrapper(opt, False, 'W')
