# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""ElasticDistanceHook writes the distance to the centre to event files."""

from __future__ import annotations

import pathlib

import numpy as np
import tensorflow as tf

from tfplugin import hooks
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1


def _events(directory):
  found = {}
  for path in pathlib.Path(directory).glob('events.*'):
    for event in tf1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        found[value.tag, event.step] = value.simple_value
  return found


def test_distance_of_each_step(behavior, tmp_path):
  del behavior
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=[0.0, 0.0])
      tf1.get_variable('mean', initializer=0.0, trainable=False)
    optimizer = elastic_average.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, getter,
        communication_period=100, rho=0.0, count_steps='local')
    train = optimizer.minimize(tf.reduce_sum(w * [3.0, 4.0]), step)
    hook = hooks.ElasticDistanceHook(optimizer, str(tmp_path), save_steps=1)
    assert not tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    with tf1.train.MonitoredSession(
        hooks=[hook, hooks.ElasticAverageHook(optimizer, 0)]) as session:
      for _ in range(3):
        session.run(train)
    tf1.summary.FileWriterCache.clear()
  events = _events(tmp_path)
  assert {tag for tag, _ in events} == {'elastic_distance'}
  # A step moves by (3, 4). Read beside the step: before or after its update.
  values = [value for _, value in sorted(events.items())]
  np.testing.assert_allclose(np.array(values) % 5.0, 0.0, atol=1e-5)
  assert max(values) in (10.0, 15.0)
