# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of the cells, each in a graph of a worker or in two processes.

An MLP 784-1024-1024-10 of 7.45 MB, 32 rows a step, SGD.
"""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

import tfplugin
from benchmarks.network import cells
from tfplugin.distribute import cluster_task
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.shards import horovod_processes

tf1 = tf.compat.v1

_RATE = 0.01
# Nothing is dropped: the cost of looking is measured.
_STALENESS = 10**6
_MAX_NORM = 3.0


class Built(NamedTuple):
  """A way to train, in the default graph.

  Attributes:
    step: The train op.
    starts: Ops to be run when all variables of the cluster are initialised.
    hooks: What the session needs.
  """

  step: tf.Operation
  starts: list
  hooks: list


def build(cell: cells.Cell, cluster: tf.train.ClusterSpec, task: int) -> Built:
  """Builds a cell of parameter servers.

  Args:
    cell: One of `cells.CELLS`.
    cluster: With the jobs ps and worker.
    task: The worker.
  """
  worker = f'/job:worker/task:{task}'
  if cell.name == cells.LOCAL:
    with tf1.device(worker):
      return Built(_sgd().minimize(_loss(task)), [], [])
  with tf1.device(tf1.train.replica_device_setter(
      worker_device=worker, cluster=cluster,
      ps_strategy=_LeastBytes(cluster.num_tasks('ps')))):
    step = tf1.train.get_or_create_global_step()
    if cell.exchange:
      return _elastic(cell, worker, task, step,
                      cluster.num_tasks('worker'))
    loss, hooks = _loss(task), []
    optimizer = _wrapped(cell)
    train_op = optimizer.minimize(loss, step)
    if cell.name == cells.SYNC:
      # No tokens at first: with them a worker may be a step ahead, so that the
      # gradients of the other one are dropped, and it waits for ever at the end
      # of a number of steps.
      hooks.append(optimizer.make_session_run_hook(task == 0, num_tokens=0))
      hooks[0].begin()
    return Built(train_op, [], hooks)


class _LeastBytes:
  """Places each variable on the server that has the fewest bytes so far."""

  def __init__(self, num_ps: int):
    """Begins with none."""
    self._bytes = [0] * num_ps

  def __call__(self, op: tf.Operation) -> int:
    """Returns the number of the server."""
    server = self._bytes.index(min(self._bytes))
    shape = tf.TensorShape(op.get_attr('shape'))
    self._bytes[server] += tf.as_dtype(
        op.get_attr('dtype')).size * shape.num_elements()
    return server


def _elastic(cell, worker, task, step, num_worker):
  getter = tfplugin.ElasticAverageCustomGetter(worker)
  with tf1.variable_scope('', custom_getter=getter):
    loss = _loss(task)
  optimizer = tfplugin.ElasticAverageOptimizer(
      _sgd(), num_worker, getter, communication_period=cell.period, rho=0.0,
      **cells.EXCHANGES[cell.exchange])
  train_op = optimizer.minimize(loss, step)
  hook = optimizer.make_session_run_hook(task == 0, task)
  hook.begin()
  return Built(train_op, [tf1.local_variables_initializer()], [hook])


def _wrapped(cell):
  if cell.name == 'drop stale':
    return tfplugin.DropStaleGradientOptimizer(_sgd(), _STALENESS)
  if cell.name == 'clipping':
    return tfplugin.VariableClippingOptimizer(
        _sgd(), {v: [0] for v in tf1.trainable_variables()
                 if v.shape.ndims == 2}, _MAX_NORM)
  if cell.name == cells.SYNC:
    return tf1.train.SyncReplicasOptimizer(
        _sgd(), cells.NUM_WORKER, cells.NUM_WORKER)
  return _sgd()


def ring_step(cell: cells.Cell) -> Any:
  """Returns a function that makes a step of all processes in TF_CONFIG.

  Args:
    cell: One of `cells.RING_CELLS` or `cells.HOROVOD_CELLS`.
  """
  if cell.name == cells.HOROVOD:
    # As in cross shard's engine, from the same environment.
    horovod_processes.join(cluster_task.from_environment())
    import horovod.tensorflow as hvd
    return _step(lambda gradients: [
        hvd.allreduce(gradient, op=hvd.Sum) for gradient in gradients])
  if cell.name == cells.MIRRORED:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
  elif cell.name == cells.ENGINE:
    strategy = cross_shard_strategy.CrossShardStrategy(engine='horovod')
  else:
    strategy = cross_shard_strategy.CrossShardStrategy(
        exchange_dtype='float16' if cell.name == cells.IN_HALVES else None)
  with strategy.scope():
    step = _step(lambda gradients: gradients)
  return tf.function(lambda: strategy.run(step))


def _step(summed):
  shapes = [shape for m, n in zip(cells.LAYERS, cells.LAYERS[1:])
            for shape in ((m, n), (n,))]
  variables = [tf.Variable(tf.random.stateless_normal(
      shape, [0, index], stddev=0.03)) for index, shape in enumerate(shapes)]
  optimizer = _sgd()

  @tf.function
  def step():
    with tf.GradientTape() as tape:
      loss = _loss_of(variables, 0)
    optimizer.apply_gradients(
        zip(summed(tape.gradient(loss, variables)), variables))

  return step


def _sgd():
  return tf1.train.GradientDescentOptimizer(_RATE)


def _loss(task):
  variables = []
  for index, (m, n) in enumerate(zip(cells.LAYERS, cells.LAYERS[1:])):
    variables += [
        tf1.get_variable(f'kernel_{index}', [m, n]),
        tf1.get_variable(f'bias_{index}', [n],
                         initializer=tf1.zeros_initializer())]
  return _loss_of(variables, task)


def _loss_of(variables, task):
  random = np.random.RandomState(task)
  hidden = tf.constant(random.rand(32, cells.LAYERS[0]).astype(np.float32))
  labels = tf.constant(random.randint(cells.LAYERS[-1], size=32))
  for kernel, bias in zip(variables[::2], variables[1::2]):
    hidden = tf.matmul(hidden, kernel) + bias
    if bias.shape[0] != cells.LAYERS[-1]:
      hidden = tf.nn.relu(hidden)
  return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=hidden))
