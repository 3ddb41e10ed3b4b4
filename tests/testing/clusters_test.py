# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A cluster in one process shares what is on its parameter servers."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.testing import clusters

tf1 = tf.compat.v1


def test_workers_share_what_is_on_the_parameter_server():
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=1)
  assert cluster.target('worker', 1).startswith('grpc://')
  assert cluster.cluster_spec.num_tasks('worker') == 2
  seen = []
  for index in range(2):
    with tf.Graph().as_default() as graph, \
        tf1.device(cluster.device_setter(index)):
      shared = tf1.get_variable('v', initializer=0.0)
      with tf1.device(f'/job:worker/task:{index}'):
        own = tf1.get_variable('own', initializer=0.0)
      add = [shared.assign_add(1.0), own.assign_add(1.0)]
      initializer = tf1.global_variables_initializer()
      with cluster.session(index, graph) as session:
        session.run(initializer if index == 0 else own.initializer)
        session.run(add)
        seen.append(session.run([shared, own]))
  assert seen == [[1.0, 1.0], [2.0, 1.0]]
