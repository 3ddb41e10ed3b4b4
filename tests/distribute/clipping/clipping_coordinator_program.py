# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A coordinator with its cluster, for clipping_coordinator_test.

Prints the weights that each case of `CASES` ends with.
"""

import json
import sys

import tensorflow as tf

from tfplugin import distribute
from tfplugin.testing import clusters

tf1 = tf.compat.v1

TABLE = [[2.0, 3.0], [6.0, 8.0], [0.1, 0.2], [0.0, 9.0]]

# The rules, whether the table is in two parts, and the rows looked up, if not
# all are used.
CASES = {
    'rows': ({'table': 1}, False, None),
    'rows_of_parts': ({'table': 1}, True, None),
    'columns_over_parts': ({'table': 0}, True, None),
    'rows_looked_up_in_parts': ({'table': 1}, True, [0, 0]),
}


def cluster_resolver():
  """Two workers and two parameter servers in this process."""
  cluster = clusters.in_process_cluster(2, 2, num_threads=4)
  return tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster.cluster_spec, rpc_layer='grpc')


def parts_of(variable):
  return getattr(variable, 'variables', [variable])


def one_step(strategy, coordinator, rows):
  """Moves each element that is used by 1, twice where a row is there twice."""
  with strategy.scope():
    table = tf.Variable(TABLE, name='table')
    other = tf.Variable([[5.0, 5.0]], name='other')
    optimizer = tf1.train.GradientDescentOptimizer(1.0)

  def replica_fn():
    variables = [*parts_of(table), other]
    with tf.GradientTape() as tape:
      used = (tf.convert_to_tensor(table) if rows is None
              else tf.nn.embedding_lookup(table, rows))
      loss = tf.reduce_sum(used) + tf.reduce_sum(other)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

  coordinator.schedule(tf.function(lambda: strategy.run(replica_fn)))
  coordinator.join()
  return {'table': tf.convert_to_tensor(table).numpy().tolist(),
          'other': other.numpy().tolist()}


def fit(strategy):
  """Trains a model with `fit`; returns the norm of its kernel's columns."""
  with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(4,))])
    model.compile(tf.keras.optimizers.SGD(0.1), 'mse')
  model.fit(tf.keras.utils.experimental.DatasetCreator(
      lambda context: tf.data.Dataset.from_tensors(
          (tf.ones([2, 4]), 100 * tf.ones([2, 2]))).repeat()),
            steps_per_epoch=1, verbose=0)
  kernel = tf.convert_to_tensor(model.layers[0].kernel)
  return tf.norm(kernel, axis=0).numpy().tolist()


def main():
  """See the module."""
  assert tf.estimator.Estimator  # Which chooses Keras: see tests/conftest.py.
  resolver = cluster_resolver()
  halves = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
  results = {}
  for name, (rules, is_partitioned, rows) in CASES.items():
    strategy = distribute.VariableClippingStrategy(
        tf.distribute.experimental.ParameterServerStrategy(
            resolver, variable_partitioner=halves if is_partitioned else None),
        rules, 1.0)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    results[name] = one_step(strategy, coordinator, rows)
  results['fit'] = fit(distribute.VariableClippingStrategy(
      tf.distribute.experimental.ParameterServerStrategy(
          resolver, variable_partitioner=halves), {'kernel': 0}, 0.5))
  sys.stdout.write(json.dumps(results) + '\n')


if __name__ == '__main__':
  main()
