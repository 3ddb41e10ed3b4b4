# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drives scenarios of ElasticAverageOptimizer: one worker, or a cluster."""

from __future__ import annotations

import os
import socket
import tempfile
import threading

from testdata.contrib_goldens import models

_TIMEOUT_MS = 4000


def _free_ports(number):
  sockets = [socket.socket() for _ in range(number)]
  for each in sockets:
    each.bind(('127.0.0.1', 0))
  ports = [each.getsockname()[1] for each in sockets]
  for each in sockets:
    each.close()
  return ports


class _Worker:
  """One worker's graph: its copies, the centre and the train op."""

  def __init__(self, tf1, contrib, scenario, task, cluster=None):
    self._tf1 = tf1
    self.graph = tf1.Graph()
    device = '/job:worker/task:%d' % task if cluster else '/cpu:0'
    setter = (tf1.train.replica_device_setter(
        worker_device=device, ps_device='/job:ps', cluster=cluster)
              if cluster else '/cpu:0')
    with self.graph.as_default(), tf1.device(setter):
      if scenario.get('resource_step'):
        self.step = tf1.get_variable(
            'global_step', [], tf1.int64, tf1.zeros_initializer(),
            trainable=False, use_resource=True,
            collections=['global_step', 'variables'])
      else:
        self.step = tf1.train.get_or_create_global_step()
      self._build(contrib, scenario, task, device)

  def _build(self, contrib, scenario, task, device):
    tf1 = self._tf1
    getter = contrib.opt.ElasticAverageCustomGetter(worker_device=device)
    with tf1.variable_scope('', custom_getter=getter):
      self.variables = models.make_variables(tf1, scenario)
      if scenario.get('statistic'):
        tf1.get_variable('statistic', [2], initializer=tf1.zeros_initializer(),
                         trainable=False)
      loss = models.total_loss(tf1, scenario, self.variables)
    if scenario.get('keras'):
      with tf1.variable_scope('', custom_getter=getter):
        layer = tf1.keras.layers.Dense(
            1, kernel_initializer='zeros', use_bias=False)
        loss += tf1.reduce_sum(layer(tf1.constant([[1.0, 2.0]])))
    if scenario.get('outside'):
      loss += tf1.get_variable(
          'outside', [], initializer=tf1.ones_initializer())
    with tf1.device(device):
      inner = models.make_optimizer(tf1, scenario['optimizer'])
      self.optimizer = contrib.opt.ElasticAverageOptimizer(
          inner, ea_custom_getter=getter, **scenario['settings'])
      if scenario.get('second_instance'):
        contrib.opt.ElasticAverageOptimizer(
            models.make_optimizer(tf1, scenario['optimizer']),
            ea_custom_getter=getter, **scenario['settings'])
      chosen = [self.variables[key] for key in scenario.get('var_list', [])]
      pairs = self.optimizer.compute_gradients(loss, chosen or None)
      self.gradients = {
          name: grad for grad, var in pairs for name in self.variables
          if var is self.variables[name] and hasattr(grad, 'op')
          and scenario.get('gradients')}
      self.train = self.optimizer.apply_gradients(pairs, self.step)
    self.start = self.optimizer.get_init_op(task)
    self.saver = self.optimizer.swapping_saver()
    self.initialize = [tf1.global_variables_initializer(),
                       tf1.local_variables_initializer()]

  def open(self, target=''):
    self.session = self._tf1.Session(
        target, graph=self.graph, config=models.session_config(self._tf1))

  def named(self, name):
    with self.graph.as_default():
      tf1 = self._tf1
      for var in tf1.global_variables() + tf1.local_variables():
        if var.op.name == name:
          return var
    return None

  def read(self):
    fetches = {'global_step': self.step, 'local_step': self.named('local_step')}
    for name in self.variables:
      fetches['local/' + name] = self.variables[name]
      center = self.named('global_center_variable/' + name)
      copy = self.named('local_center_variable/' + name)
      if center is not None:
        fetches['center/' + name] = center
      if copy is not None:
        fetches['local_center/' + name] = copy
    partitioned = {key: list(var) for key, var in fetches.items()
                   if hasattr(var, '_variable_list')
                   or type(var).__name__ == 'PartitionedVariable'}
    fetches.update(partitioned)
    return models.plain(self.session.run(fetches))

  def describe(self, scenario):
    tf1 = self._tf1
    result = {}
    with self.graph.as_default():
      result['global_names'] = models.names(tf1.global_variables())
      result['local_names'] = models.names(tf1.local_variables())
      result['slots'] = models.slots(
          self.session, self.optimizer, self.variables)
      with tempfile.TemporaryDirectory() as folder:
        path = self.saver.save(
            self.session, os.path.join(folder, 'model'),
            write_meta_graph=False)
        reader = tf1.train.NewCheckpointReader(path)
        result['saved'] = {
            key: models.plain(reader.get_tensor(key))
            for key in reader.get_variable_to_shape_map()}
    return result


def elastic(tf1, contrib, scenario):
  """Runs the workers in the order that the scenario gives."""
  if scenario.get('workers', 1) == 1:
    worker = _Worker(tf1, contrib, scenario, 0)
    worker.open()
    worker.session.run(worker.initialize)
    worker.session.run(worker.start)
    workers = [worker]
  else:
    workers = _start_cluster(tf1, contrib, scenario)
  _move_away(tf1, workers[0], scenario.get('local_start', {}))
  gradients = models.plain(workers[0].session.run(workers[0].gradients))
  steps = []
  for task in scenario['order']:
    workers[task].session.run(workers[task].train)
    steps.append(workers[task].read())
  result = workers[0].describe(scenario)
  result['steps'] = steps
  if scenario.get('gradients'):
    result['gradients'] = gradients
  for worker in workers:
    worker.session.close()
  return result


def _move_away(tf1, worker, values):
  """Gives local copies values that differ from the centre's."""
  with worker.graph.as_default():
    for name, value in values.items():
      worker.session.run(tf1.assign(worker.variables[name], value))


def _start_cluster(tf1, contrib, scenario):
  number = scenario['workers']
  ports = ['127.0.0.1:%d' % port for port in _free_ports(number + 1)]
  cluster = tf1.train.ClusterSpec({'ps': ports[:1], 'worker': ports[1:]})
  servers = [tf1.train.Server(cluster, 'ps', 0)] + [
      tf1.train.Server(cluster, 'worker', task) for task in range(number)]
  workers = [_Worker(tf1, contrib, scenario, task, cluster)
             for task in range(number)]
  for worker, server in zip(workers, servers[1:]):
    worker.open(server.target)
  workers[0].session.run(workers[0].initialize)
  for worker in workers[1:]:
    worker.session.run(worker.initialize[1])
  _start_together(tf1, workers)
  return workers


def _start_together(tf1, workers):
  """Runs the initialisation of all workers at once, with a time limit."""
  errors = []

  def start(worker):
    try:
      worker.session.run(worker.start, options=tf1.RunOptions(
          timeout_in_ms=_TIMEOUT_MS))
    except tf1.errors.OpError as error:
      errors.append(error)

  threads = [threading.Thread(target=start, args=[each]) for each in workers]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  if errors:
    raise errors[0]
