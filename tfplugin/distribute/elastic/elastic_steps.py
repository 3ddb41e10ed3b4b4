# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a step of a strategy begins and ends, and which steps are counted."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.updates import met_updates
from tfplugin.distribute.updates import update_audit
from tfplugin.ops import elastic

tf1 = tf.compat.v1


class ElasticSteps(met_updates.MetUpdates):
  """Goes in front of an extended class; makes each replica call one step.

  A step that applied gradients ends with the communication, if one is due:
  before the next line in eager mode and in a `tf.function`, and in a graph
  before whatever the call returned that depends on an update.
  """

  # Set by the class: the settings, and the exchanges of graphs and of eager
  # execution.
  _settings: elastic_settings.ElasticSettings
  _exchanges: per_graph.PerGraph

  def _key(self):
    if tf1.executing_eagerly_outside_functions():
      return self
    with tf.init_scope():
      return tf1.get_default_graph()

  def _exchange(self) -> elastic_exchange.Exchange:
    """The exchange of what is being built, made when first asked for."""
    key = self._key()
    if key not in self._exchanges:
      with tf.init_scope():
        self._exchanges[key] = elastic_exchange.Exchange(
            self._settings, self._settings.rate(self.num_worker),
            self._create_local_step())
      if key is self:  # Perhaps in a `tf.function`.
        self._exchanges[key].begin()
    return self._exchanges[key]

  def _has_exchange(self) -> bool:
    return self._key() in self._exchanges

  def _call_for_each_replica(self, fn, args, kwargs):
    if self._has_exchange():
      self._exchange().begin()
    result = super()._call_for_each_replica(fn, args, kwargs)
    if not self._has_exchange():
      return result
    exchange = self._exchange()
    if (exchange.has_gradients or
        getattr(result, 'train_op', None) is not None):
      result = self._end_step(exchange, result)
    exchange.is_finished = True
    return result

  def _audit_step(self, result):
    super()._audit_step(result)
    if not self._has_exchange() or not elastic.is_penalty(self._settings.rho):
      return
    for variable, operation in self.unseen_updates(
        result, self._exchange().trained):
      raise update_audit.refusal(
          'ElasticAverageStrategy', variable, operation,
          elastic_exchange.AUDITED)

  def _end_step(self, exchange, result):
    if tf.executing_eagerly() or tf.inside_function():
      exchange.finish([])
      return result
    if hasattr(result, 'train_op'):
      return parameter_server_base.with_fields(
          result, train_op=exchange.finish(self._values_of(result.train_op)))
    return self._end_results(exchange, result)

  def _end_results(self, exchange, result):
    """Returns `result`, of which all that was trained for waits for the end."""
    values = [value for leaf in tf.nest.flatten(result)
              for value in self._values_of(leaf)]
    trained = [value for value in values if not exchange.updates.isdisjoint(
        graph_order.upstream(graph_order.operations_of([value])))]
    if not trained:
      raise RuntimeError(
          'The function that ElasticAverageStrategy runs must return an '
          'EstimatorSpec, or its train_op, which is to end with the '
          f'communication. Received: {result!r}, of which no part depends on '
          'an update of a variable. Return the result of `minimize` or '
          '`apply_gradients`, too.')
    done = exchange.finish(trained)

    def ended(value):
      is_trained = any(value is each for each in trained)
      return elastic_exchange.after(value, [done]) if is_trained else value

    return tf.nest.map_structure(
        lambda leaf: _tf_internals.regroup(
            tuple(map(ended, self._values_of(leaf)))), result)

  def _values_of(self, leaf) -> list:
    strategy = self._container_strategy()
    return list(strategy.experimental_local_results(leaf))

  def _update(self, var, fn, args, kwargs, group):
    steps = [parameter_server_base.unwrapped(step) for step in
             tf1.get_collection(tf1.GraphKeys.GLOBAL_STEP)]
    if steps and self._settings.count_steps == 'communications':
      parameter_server_base.refuse_keras_update(
          fn,
          parameter_server_base.COUNTS_STEPS.format('ElasticAverageStrategy'),
          ", or pass count_steps='local'")
      if any(parameter_server_base.unwrapped(var) is step for step in steps):
        return self._count_if_due(var, fn, args, kwargs, group)
    result = super()._update(var, fn, args, kwargs, group)
    if self._has_exchange() and not tf.executing_eagerly():
      self._exchange().updates.update(graph_order.operations_of(
          value for leaf in tf.nest.flatten(result)
          for value in self._values_of(leaf)))
    return result

  def _count_if_due(self, var, fn, args, kwargs, group):
    """Counts the step beside the exchange, which is not to wait for the ps."""
    exchange = self._exchange()
    update = super()._update

    def count():
      with tf1.control_dependencies(
          tf.nest.flatten(update(var, fn, args, kwargs, group=False))):
        return tf.constant(True)

    counted = exchange.if_due(count, [])
    done = counted.op
    if not exchange.is_finished:
      exchange.counts.append(counted)
      done = tf.no_op()
    result = self._read_after(var, done)
    return result if group else (result,)

  def _read_after(self, var, done):
    """The value of a counter for whoever asked to advance it."""
    return _tf_internals.read_after(parameter_server_base.unwrapped(var), done)
