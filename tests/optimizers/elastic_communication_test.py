# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bytes that cross the network in a communication, counted in the graph."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.optimizers import elastic_communication
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

_PS = '/job:ps/task:0'
_WORKER = '/job:worker/task:0'


def _pair(center=0.0):
  getter = elastic_custom_getter.ElasticAverageCustomGetter(_WORKER)
  with tf1.device(_PS), getter.scope():
    tf1.get_variable('w', initializer=np.float32(center), use_resource=True)
  return getter.pairs[0]


def test_center_is_sent_once_and_difference_once():
  with tf.Graph().as_default() as graph:
    pair = _pair()
    with tf1.device(_WORKER):
      kept = tf1.get_variable('kept', [], use_resource=True)
    before = set(graph.get_operations())
    elastic_communication.exchange(pair, kept, 0.5, use_locking=True)
    new = [op for op in graph.get_operations() if op not in before]
  crossing = {
      (source.op.device, op.device, source.name) for op in new
      for source in op.inputs if source.dtype == tf.float32
      and source.op.device and op.device and source.op.device != op.device}
  assert sorted((a, b) for a, b, _ in crossing) == [
      (_PS, _WORKER), (_WORKER, _PS)]


@pytest.mark.parametrize('use_resource', [None, False])
def test_condition_and_step(behavior, use_resource):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_custom_getter.ElasticAverageCustomGetter('')
    with getter.scope():
      local = tf1.get_variable('w', initializer=4.0,
                               use_resource=use_resource)
    step = tf1.train.create_global_step()
    should = tf1.placeholder(tf.bool, [])
    done = elastic_communication.exchange_if(
        should, [(getter.pairs[0], None)], 0.25, True, step)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(local.assign(8.0))
      session.run(done, {should: False})
      assert session.run([local, getter.pairs[0].center, step]) == [8, 4, 0]
      session.run(done, {should: True})  # d = .25 * (8 - 4)
      assert session.run([local, getter.pairs[0].center, step]) == [7, 5, 1]
