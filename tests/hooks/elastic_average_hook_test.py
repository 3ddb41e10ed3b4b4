# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""ElasticAverageHook by its public name; the optimizer's tests have more."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import hooks
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1


def test_copies_take_the_value_of_the_center(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=1.0)
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), 1, getter)
    scaffold = tf1.train.Scaffold(
        init_op=getter.pairs[0].center.assign(7.0).op)
    with tf1.train.MonitoredSession(
        tf1.train.ChiefSessionCreator(scaffold),
        hooks=[hooks.ElasticAverageHook(optimizer, 0)]) as session:
      np.testing.assert_array_equal(session.run(w), 7.0)
    with pytest.raises(ValueError, match='`task_index`'):
      hooks.ElasticAverageHook(optimizer, 1)
