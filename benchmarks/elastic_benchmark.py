# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Local steps per second under elastic averaging, beside asynchronous SGD.

usage: python -m benchmarks.elastic_benchmark [v1|v2]

Two workers and a parameter server, each a process, an MLP 784-256-256-10, 32
rows a step. One cluster holds all variants, each in a graph and a container of
its own; both workers run the same one at a time, in slots by the clock. The
best slot of each variant counts. Bytes that cross the network from one
communication to the next are in units of the model. Prints the figures as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import tensorflow as tf

import tfplugin
from benchmarks import machine
from benchmarks import roles
from benchmarks import rows
from benchmarks import trained
from tfplugin.bin.processes import ports

tf1 = tf.compat.v1

_VARIANTS = ('async', *(f'{kind} {period}' for kind in ('optimizer', 'strategy')
                        for period in rows.PERIODS))
_ROUNDS = 6
_SLOT_SECS = 1.0
_START_SECS = 300.0
_LAYERS = (784, 256, 256, 10)
_MODEL_BYTES = 4 * sum((m + 1) * n for m, n in zip(_LAYERS, _LAYERS[1:]))


def _loss():
  random = np.random.RandomState(0)
  hidden = tf.constant(random.rand(32, _LAYERS[0]).astype(np.float32))
  labels = tf.constant(random.randint(_LAYERS[-1], size=32))
  for index, units in enumerate(_LAYERS[1:]):
    kernel = tf1.get_variable(f'kernel_{index}', [hidden.shape[1], units])
    bias = tf1.get_variable(f'bias_{index}', [units],
                            initializer=tf1.zeros_initializer())
    hidden = tf.matmul(hidden, kernel) + bias
    if units != _LAYERS[-1]:
      hidden = tf.nn.relu(hidden)
  return tf1.losses.sparse_softmax_cross_entropy(labels, hidden)


def _minimize(optimizer, loss):
  return optimizer.minimize(
      loss, global_step=tf1.train.get_or_create_global_step())


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.01)


def _setter(cluster, task):
  return tf1.device(tf1.train.replica_device_setter(
      worker_device=f'/job:worker/task:{task}', cluster=cluster))


def _build_async(cluster, task, period):
  del period
  with _setter(cluster, task):
    return _minimize(_sgd(), _loss()), []


def _build_optimizer(cluster, task, period):
  device = f'/job:worker/task:{task}'
  getter = tfplugin.ElasticAverageCustomGetter(device)
  with _setter(cluster, task):
    with tf1.variable_scope('', custom_getter=getter):
      loss = _loss()
    optimizer = tfplugin.ElasticAverageOptimizer(
        _sgd(), 2, getter, communication_period=period, rho=0.0)
    train_op = _minimize(optimizer, loss)
    return train_op, [tf1.local_variables_initializer(),
                      optimizer.get_init_op(task)]


def _build_strategy(cluster, task, period):
  resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster, task_type='worker', task_id=task)
  strategy = tfplugin.distribute.ElasticAverageStrategy(
      resolver, communication_period=period)

  def model_fn():
    loss = _loss()
    return tf1.estimator.EstimatorSpec(
        'train', loss=loss, train_op=_minimize(_sgd(), loss))

  with strategy.scope():
    tf1.train.get_or_create_global_step()
    spec = strategy.extended.call_for_each_replica(
        tf.autograph.experimental.do_not_convert(model_fn))
  return spec.train_op, [tf1.local_variables_initializer()]


_BUILDERS = {'async': _build_async, 'optimizer': _build_optimizer,
             'strategy': _build_strategy}


def _session(server, task):
  return tf1.Session(server.target, config=tf1.ConfigProto(
      allow_soft_placement=True,
      device_filters=['/job:ps', f'/job:worker/task:{task}']))


def _start(variant, server, cluster, task):
  """Builds and initializes a variant; returns its session and step."""
  kind, _, period = variant.partition(' ')
  graph = tf.Graph()
  with graph.as_default(), graph.container(variant.replace(' ', '.')):
    step, starts = _BUILDERS[kind](cluster, task, int(period or 0))
    ready = tf1.report_uninitialized_variables(tf1.global_variables())
    initialize = tf1.global_variables_initializer()
    session = _session(server, task)
    if task == 0:
      session.run(initialize)
    while session.run(ready).size:
      time.sleep(0.1)
    for start in starts:
      session.run(start)
  step = getattr(step, 'op', step)
  session.run(step)
  return session, step


def steps_here(variants):
  """Returns the session and the step of each; a worker and a server are here.

  Args:
    variants: Some of those above.
  """
  cluster, server = trained.cluster_here()
  return [_start(variant, server, cluster, 0) for variant in variants]


def _transferred(session, step, period):
  """Bytes between the processes in `period` steps: in one communication."""
  total = 0
  for _ in range(period):
    metadata = tf1.RunMetadata()
    session.run(step, options=tf1.RunOptions(
        trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
    total += sum(
        description.allocation_description.requested_bytes
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats if node.node_name == 'RecvTensor'
        for description in [o.tensor_description for o in node.output])
  return total


def _run_slots(steps, begin):
  """Returns for each variant the steps per second of its best slot."""
  rates = [[] for _ in steps]
  for _ in range(_ROUNDS):
    for index, step in enumerate(steps):
      time.sleep(max(0.0, begin - time.time()))
      count, start, end = 0, time.time(), begin + 0.9 * _SLOT_SECS
      while time.time() < end:
        step()
        count += 1
      rates[index].append(count / (time.time() - start))
      begin += _SLOT_SECS
  return rates


def _run_role(role, hosts):
  requests = roles.requests()
  cluster = tf.train.ClusterSpec({'ps': hosts[:1], 'worker': hosts[1:]})
  job, task = ('worker', role - 1) if role else ('ps', 0)
  server = tf.distribute.Server(cluster, job, task)
  if job == 'ps':
    server.join()
  started = [_start(variant, server, cluster, task) for variant in _VARIANTS]
  transferred = [_transferred(*each, int(variant.partition(' ')[2] or 1))
                 for variant, each in zip(_VARIANTS, started)]
  roles.say(None)
  [begin] = requests.get()
  roles.say([_run_slots([session.make_callable(step)
                         for session, step in started], begin), transferred])


def _run_cluster(behavior):
  hosts = ','.join(f'127.0.0.1:{port}' for port in ports.pick_free(3))
  with roles.running(
      [[sys.executable, '-W', 'ignore', '-m', 'benchmarks.elastic_benchmark',
        behavior, str(role), hosts] for role in range(3)],
      machine.ROOT) as processes:
    workers = [roles.Role(process, f'worker:{task}')
               for task, process in enumerate(processes[1:])]
    for worker in workers:
      worker.answer(_START_SECS)
    for worker in workers:
      worker.ask(time.time() + 1)
    return [worker.answer(_START_SECS) for worker in workers]


def measure(behavior):
  """Returns steps per second of a worker, and what a communication moves."""
  (first, transferred), (second, _) = _run_cluster(behavior)
  best = [max(np.mean(slot) for slot in zip(*rates))
          for rates in zip(first, second)]
  return {f'{variant}/{name}': figure
          for variant, rate, sent in zip(_VARIANTS, best, transferred)
          for name, figure in (('rate', rate), ('models', sent / _MODEL_BYTES))}


def main(argv):
  """Measures in one of the two behaviours, or runs a role."""
  behavior = (argv[1:2] or ['v2'])[0]
  if behavior == 'v1':
    tf1.disable_v2_behavior()
  if argv[2:]:
    _run_role(int(argv[2]), argv[3].split(','))
    return
  print(json.dumps(measure(behavior)))


if __name__ == '__main__':
  main(sys.argv)
