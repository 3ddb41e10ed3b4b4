# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One process of a horovodrun for horovod_processes_test; writes what it got.

usage: horovod_program.py MODE GROUPS_AS_JSON DIRECTORY
"""

import json
import pathlib
import sys

import horovod.tensorflow as hvd
import tensorflow as tf

import tfplugin
from tfplugin.distribute.shards import current_shards

tf1 = tf.compat.v1


def loss_of(weight, table):
  """The loss of process i: weight * (i + 1) + twice row i of the table."""
  rank = hvd.rank()
  rows = tf.gather(table, [rank, rank])
  return weight * (rank + 1.0) + tf.reduce_sum(rows)


def make_optimizer(groups):
  """Momentum tells a sum that is applied twice from one that is doubled."""
  return tfplugin.CrossShardOptimizer(
      tf1.train.MomentumOptimizer(1.0, 0.5), group_assignment=groups)


def in_graph(groups):
  """Two steps in a session; the sum of squares of ranks and its gradient."""
  with tf.Graph().as_default(), tf1.Session() as session:
    # Apart, to show that the broadcast is the program's.
    weight = tf1.get_variable('weight', initializer=100.0 + hvd.rank())
    table = tf1.get_variable('table', initializer=tf.zeros([4, 1]))
    train_op = make_optimizer(groups).minimize(loss_of(weight, table))
    x = tf.constant(hvd.rank() + 1.0)
    total = current_shards.cross_replica_sum(x * x, groups)
    gradient, = tf.gradients(total, x)
    session.run(tf1.global_variables_initializer())
    session.run(hvd.broadcast_global_variables(0))
    session.run(train_op)
    session.run(train_op)
    return [each.tolist()
            for each in session.run([weight, table[:, 0], total, gradient])]


def in_function(groups):
  """Two steps of a `tf.function`."""
  weight, table = tf.Variable(100.0), tf.Variable(tf.zeros([4, 1]))
  optimizer = make_optimizer(groups)

  @tf.function
  def step():
    optimizer.minimize(lambda: loss_of(weight, table), var_list=[weight, table])

  step()
  step()
  return [float(weight), table.numpy()[:, 0].tolist()]


def by_estimator(groups, model_dir):
  """Two steps of an Estimator; the first process alone saves."""

  def model_fn(features, labels, mode):
    del features, labels
    weight = tf1.get_variable('weight', initializer=100.0)
    table = tf1.get_variable('table', initializer=tf.zeros([4, 1]))
    loss = loss_of(weight, table)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=make_optimizer(groups).minimize(
            loss, tf1.train.get_global_step()))

  estimator = tf.estimator.Estimator(
      model_fn, model_dir if hvd.rank() == 0 else None)
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(0.0).repeat(), max_steps=2,
      hooks=[hvd.BroadcastGlobalVariablesHook(0)])
  return [float(estimator.get_variable_value('weight')),
          estimator.get_variable_value('table')[:, 0].tolist()]


def in_replicas():
  """What is said where a strategy's replicas would be all that is summed."""
  strategy = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])
  with strategy.scope():
    weight = tf.Variable(1.0)
  try:
    strategy.run(lambda: make_optimizer(None).minimize(
        lambda: weight * 1.0, var_list=[weight]))
  except RuntimeError as error:
    return str(error)


def main(mode, groups, directory):
  """See the module."""
  groups = json.loads(groups)
  if mode == 'replicas':
    cpu = tf.config.list_physical_devices('CPU')[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
  elif mode != 'function':
    tf1.disable_v2_behavior()
  hvd.init()
  found = {
      'graph': lambda: in_graph(groups),
      'function': lambda: in_function(groups),
      'estimator': lambda: by_estimator(groups, f'{directory}/model'),
      'replicas': in_replicas,
  }[mode]()
  path = pathlib.Path(directory) / f'{hvd.rank()}.json'
  path.write_text(json.dumps(found))


if __name__ == '__main__':
  main(*sys.argv[1:])
