# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading rows."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.variables import row_reads
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.mark.parametrize('use_resource', [False, True])
def test_rows_are_read_after_an_update(behavior, use_resource):
  cluster = clusters.in_process_cluster(num_workers=1)
  with tf.Graph().as_default() as graph, tf.device('/job:worker/task:0'):
    # What a model reads is a copy on its worker, made before the update.
    with tf.device('/job:ps/task:0'):
      v = tf1.get_variable('v', initializer=[[1.0], [2.0], [3.0]],
                           use_resource=use_resource,
                           caching_device='/job:worker/task:0')
    update = tf1.assign_add(v, v * 0.0 + 3.0)
    with tf.device('/job:ps/task:0'), tf.control_dependencies([update.op]):
      rows = row_reads.gather(v, tf.constant([2, 0, 2]))
    with cluster.session(0, graph) as session:
      session.run(tf1.global_variables_initializer())
      np.testing.assert_array_equal(session.run(rows), [[6.0], [4.0], [6.0]])
