# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drives scenarios of the clipping, drop-stale and cross-shard optimizers.

Each function takes the TensorFlow module, a `contrib` and the scenario, and
returns what there is to compare, as numbers, strings, lists and dicts.
"""

from __future__ import annotations

import numpy as np

from testdata.contrib_goldens import models


def clip(tf1, contrib, scenario):
  """Runs VariableClippingOptimizer for `steps` steps."""
  with tf1.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    variables = models.make_variables(tf1, scenario)
    settings = dict(scenario['settings'])
    keys = dict(variables)
    if scenario.get('unknown'):
      keys[scenario['unknown']] = tf1.get_variable(
          scenario['unknown'], [2], trainable=False)
    dims = {keys[key]: value for key, value in settings.pop('dims').items()}
    optimizer = models.make_optimizer(tf1, scenario['optimizer'])
    optimizer = contrib.opt.VariableClippingOptimizer(
        optimizer, dims, **settings)
    chained = scenario.get('chained')
    if chained:
      optimizer = contrib.opt.VariableClippingOptimizer(
          optimizer, {keys[k]: v for k, v in chained['dims'].items()},
          chained['max_norm'])
    train = optimizer.minimize(
        models.total_loss(tf1, scenario, variables), global_step=step)
    with tf1.Session(config=models.session_config(tf1)) as session:
      session.run(tf1.global_variables_initializer())
      return _trajectory(tf1, session, scenario, train, step, optimizer,
                         variables)


def _trajectory(tf1, session, scenario, train, step, optimizer, variables):
  read = {key: tf1.convert_to_tensor(var) for key, var in variables.items()}
  steps = []
  for _ in range(scenario['steps']):
    session.run(train)
    steps.append(models.plain(session.run(read)))
  return {
      'steps': steps,
      'slots': models.slots(session, optimizer, variables),
      'global_step': int(session.run(step)),
      'global_names': models.names(tf1.global_variables()),
      'local_names': models.names(tf1.local_variables()),
  }


class _Worker:
  """One worker's graph and session on a server that others share."""

  def __init__(self, tf1, contrib, scenario, target, during):
    self._tf1 = tf1
    self.graph = tf1.Graph()
    with self.graph.as_default():
      self._build(contrib, scenario, during)
      self.session = tf1.Session(
          target, config=models.session_config(tf1))

  def _build(self, contrib, scenario, during):
    tf1 = self._tf1
    if not scenario.get('no_global_step'):
      self.step = tf1.train.get_or_create_global_step()
    self.variables = models.make_variables(tf1, scenario)
    optimizer = models.make_optimizer(tf1, scenario['optimizer'])
    self.optimizer = contrib.opt.DropStaleGradientOptimizer(
        optimizer, **scenario['settings'])
    loss = models.total_loss(tf1, scenario, self.variables)
    step = None if scenario.get('global_step_none') else self.step
    if scenario.get('overtaken_in') == 'forward':
      wait = _call(tf1, during, loss)
      with tf1.control_dependencies([wait]):
        self.train = self.optimizer.minimize(tf1.identity(loss), step)
    elif scenario.get('apply_only'):
      var_list = list(self.variables.values())
      gradients = tf1.gradients(loss, var_list)
      self.train = self.optimizer.apply_gradients(
          zip(gradients, var_list), step)
    else:
      loss = _interrupt_gradient(tf1, during, loss)
      self.train = self.optimizer.minimize(loss, step)
    if scenario.get('second_instance'):
      second = contrib.opt.DropStaleGradientOptimizer(
          models.make_optimizer(tf1, scenario['optimizer']),
          **scenario['settings'])
      self.train = tf1.group(self.train, second.minimize(loss, step))

  def read(self):
    with self.graph.as_default():
      tf1 = self._tf1
      fetches = dict(self.variables)
      fetches['global_step'] = self.step
      fetches['stale_counter'] = [
          v for v in tf1.global_variables() if v.op.name == 'stale_counter'][0]
      return models.plain(self.session.run(fetches))


def _call(tf1, function, tensor):
  """Returns an op that calls `function` once `tensor` is there."""
  def body(value):
    function()
    return np.int64(0)
  return tf1.py_func(body, [tensor], tf1.int64)


def _interrupt_gradient(tf1, function, loss):
  """Returns the loss; its gradient is made after `function` was called."""
  @tf1.custom_gradient
  def identity(value):
    def grad(upstream):
      with tf1.control_dependencies([_call(tf1, function, value)]):
        return tf1.identity(upstream)
    return tf1.identity(value), grad
  return identity(loss)


def stale(tf1, contrib, scenario):
  """Runs two workers; the other one steps while the first one computes."""
  server = tf1.train.Server.create_local_server()
  pending = []
  second = _Worker(tf1, contrib, scenario, server.target, lambda: None)

  def overtake():
    for _ in range(pending.pop() if pending else 0):
      second.session.run(second.train)

  first = _Worker(tf1, contrib, scenario, server.target, overtake)
  with first.graph.as_default():
    first.session.run(tf1.global_variables_initializer())
    first.session.run(tf1.local_variables_initializer())
    second_graph = second.graph
  with second_graph.as_default():
    second.session.run(tf1.local_variables_initializer())
  steps = []
  for overtaking in scenario['overtaking']:
    pending.append(overtaking)
    first.session.run(first.train)
    steps.append(first.read())
  with first.graph.as_default():
    result = {
        'steps': steps,
        'slots': models.slots(first.session, first.optimizer, first.variables),
        'global_names': models.names(tf1.global_variables()),
        'local_names': models.names(tf1.local_variables()),
        'summaries': models.summary_values(first.session, tf1),
    }
  first.session.close()
  second.session.close()
  return result


def cross_shard(tf1, contrib, scenario):
  """Builds CrossShardOptimizer under a shard context; runs the gradients."""
  with tf1.Graph().as_default() as graph:
    step = tf1.train.get_or_create_global_step()
    variables = models.make_variables(tf1, scenario)
    optimizer = models.make_optimizer(tf1, scenario['optimizer'])
    optimizer = contrib.tpu.CrossShardOptimizer(
        optimizer, **scenario['settings'])
    loss = models.total_loss(tf1, scenario, variables)
    shards = scenario.get('shards')
    if shards is None:
      train = optimizer.minimize(loss, step)
      with tf1.Session(config=models.session_config(tf1)) as session:
        session.run(tf1.global_variables_initializer())
        return _trajectory(tf1, session, scenario, train, step, optimizer,
                           variables)
    with contrib.shard_context(shards):
      if scenario.get('apply_only'):
        var_list = list(variables.values())
        optimizer.apply_gradients(
            zip(tf1.gradients(loss, var_list), var_list), step)
      else:
        optimizer.minimize(loss, step)
    return _sums(tf1, graph, scenario)


def _sums(tf1, graph, scenario):
  """Returns what goes into each sum over shards, and over which groups."""
  sums = [op for op in graph.get_operations() if op.type == 'CrossReplicaSum']
  tensors = [op.inputs[0] for op in sums]
  result = {'num_sums': len(sums),
            'groups': [_constant(tf1, op.inputs[1]) for op in sums],
            'global_names': models.names(tf1.global_variables())}
  if not scenario.get('structure_only'):
    initializers = [v.initializer.name for v in tf1.trainable_variables()]
    part = tf1.graph_util.extract_sub_graph(
        graph.as_graph_def(), initializers + [t.op.name for t in tensors])
    with tf1.Graph().as_default():
      start = tf1.import_graph_def(part, return_elements=initializers, name='')
      with tf1.Session(config=models.session_config(tf1)) as session:
        session.run(start)
        result['summands'] = models.plain(
            session.run([t.name for t in tensors]))
  return result


def _constant(tf1, tensor):
  return models.plain(tf1.make_ndarray(tensor.op.get_attr('value'))
                      if hasattr(tf1, 'make_ndarray')
                      else _ndarray(tensor.op.get_attr('value')))


def _ndarray(proto):
  dims = [dim.size for dim in proto.tensor_shape.dim]
  if proto.tensor_content:
    return np.frombuffer(proto.tensor_content, np.int32).reshape(dims)
  return np.full(dims, proto.int_val[0] if proto.int_val else 0)
