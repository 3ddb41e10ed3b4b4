# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of one weight on four shards."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
CPUS = ['/device:CPU:0', '/device:CPU:1', '/device:CPU:2', '/device:CPU:3']

# Loss of shard i = weight * GRADIENTS[i], gradient GRADIENTS[i].
GRADIENTS = np.float32([1, 2, 4, 8])


def train(strategy, make_train_op, steps=1):
  """Runs `make_train_op(weight, x)` on each shard; returns the weights."""
  with tf.Graph().as_default(), strategy.scope():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      weight = tf1.get_variable('weight', initializer=100.0, use_resource=True)
      x = tf.gather(tf.constant(GRADIENTS), index)
      return make_train_op(weight, x), weight

    train_op, weight = strategy.run(shard)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(steps):
        session.run(strategy.experimental_local_results(train_op))
      return session.run(list(strategy.experimental_local_results(weight)))
