# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One task of a cluster for cross_shard_extended_test; prints what it got.

usage: cross_shard_program.py MODE MODEL_DIR GROUPS_AS_JSON ENGINE

TF_CONFIG says which one.
"""

import json
import sys

import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1


def model_fn(features, labels, mode, params):
  """Loss of worker i: weight * (i + 1) + table[i + 1]."""
  del labels
  weight = tf1.get_variable('weight', initializer=100.0)
  table = tf1.get_variable('table', [4, 1],
                           initializer=tf1.zeros_initializer())
  row = tf1.nn.embedding_lookup(table, tf.cast(features, tf.int32))
  loss = tf.reduce_mean(weight * features) + tf.reduce_mean(row)
  optimizer = tf1.train.MomentumOptimizer(1.0, 0.5)
  gradients = optimizer.compute_gradients(loss)
  if params['sums']:
    gradients = [(tfplugin.cross_replica_sum(g), v) for g, v in gradients]
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=optimizer.apply_gradients(
          gradients, tf1.train.get_global_step()))


class CopyHook(tf1.train.SessionRunHook):
  """Notes this worker's copy of a variable at the end of the training."""

  def __init__(self, result):
    self._result = result

  def end(self, session):
    copy = tf1.get_default_graph().get_tensor_by_name(self._read.name)
    self._result['table'] = session.run(copy)[:, 0].tolist()

  def begin(self):
    (table,) = [v for v in tf1.trainable_variables() if 'table' in v.name]
    self._read = tf.identity(table.read_value())


def input_fn(input_context=None):
  """One row: the number of the worker, from 1."""
  index = input_context.input_pipeline_id if input_context else 0
  return tf.data.Dataset.from_tensors(tf.constant([index + 1.0])).repeat()


def train_with_estimator(strategy, model_dir, result, sums):
  """Two steps; the checkpoint has the result, and `result` this copy."""
  estimator = tf.estimator.Estimator(
      model_fn, params={'sums': sums}, config=tf.estimator.RunConfig(
          model_dir, train_distribute=strategy))
  tf.estimator.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(
          input_fn, max_steps=2, hooks=[CopyHook(result)]),
      tf.estimator.EvalSpec(
          input_fn, steps=1, start_delay_secs=0, throttle_secs=1))


def train_with_run(strategy):
  """Two steps of `strategy.run`; returns this worker's copy."""
  with strategy.scope():
    weight = tf.Variable(100.0)
  optimizer = tf1.train.MomentumOptimizer(1.0, 0.5)

  @tf.function
  def step():
    def shard():
      index = tf.distribute.get_replica_context().replica_id_in_sync_group
      x = tf.cast(index, tf.float32) + 1.0
      optimizer.minimize(lambda: weight * x, var_list=[weight])
    strategy.run(shard)

  step()
  step()
  return float(weight.read_value())


def main(mode, model_dir, groups, engine):
  """See the module."""
  if mode == 'v1':
    tf1.disable_v2_behavior()
  from tfplugin import distribute
  from tfplugin.distribute.shards import horovod_processes
  if mode == 'clipping':
    strategy = distribute.VariableClippingStrategy(
        tf.distribute.MultiWorkerMirroredStrategy(), {'table': 1}, 0.75)
  else:
    strategy = distribute.CrossShardStrategy(
        group_assignment=json.loads(groups), engine=engine)
  result = {'shards': strategy.num_replicas_in_sync,
            'processes_of_horovod': horovod_processes.number()}
  if mode == 'run':
    result['weight'] = train_with_run(strategy)
  else:
    train_with_estimator(strategy, model_dir, result, mode == 'summed')
  sys.stdout.write(json.dumps(result) + '\n')


if __name__ == '__main__':
  main(*sys.argv[1:])
