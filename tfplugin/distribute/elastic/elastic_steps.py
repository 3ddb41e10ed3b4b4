# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The variables and the steps of both strategies; which steps are counted."""

from __future__ import annotations

import contextlib
import functools
import itertools

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.updates import met_updates
from tfplugin.distribute.updates import update_audit
from tfplugin.ops import elastic

tf1 = tf.compat.v1

Role = elastic_variables.Role


class ElasticSteps(met_updates.MetUpdates):
  """Goes in front of an extended class; makes each replica call one step.

  The class says where a centre is (`_on_server`) and what a worker has once
  (`_on_worker`), makes copies of a centre (`_create_copies`) and the counter of
  steps (`_create_local_step`), and counts the workers (`_num_copies`).

  A step that applied gradients ends with the communication, if one is due:
  before the next line in eager mode and in a `tf.function`, and in a graph
  before whatever the call returned that depends on an update.
  """

  # Enters a merge call of one replica of several, in a branch; None where one
  # replica needs nobody.
  _alone = None

  def __init__(self, container_strategy,
               settings: elastic_settings.ElasticSettings, **kwargs):
    """Takes the settings.

    Args:
      container_strategy: The strategy that this implements.
      settings: The rule's settings.
      **kwargs: For the base class.
    """
    super().__init__(container_strategy, **kwargs)
    self._settings = settings
    # Those of graphs, and that of eager execution.
    self._exchanges = per_graph.PerGraph()
    self._depth = 0

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self._settings.num_worker or self._num_copies

  def _create_variable(self, next_creator, **kwargs):
    role = elastic_variables.role_of(kwargs, self._settings.statistics)
    if role is Role.STATE:
      return self._create_state(next_creator, **kwargs)
    if role is not Role.ELASTIC:
      return super()._create_variable(next_creator, **kwargs)
    # The body of a loop may make a variable; the copy starts from the centre.
    with tf.init_scope():
      with self._on_server():
        center = elastic_variables.center_of(next_creator, kwargs)
      if not center.dtype.is_floating:
        return self._without_average(center)
      copies = self._create_copies(
          lambda **kwargs: elastic_variables.copy_of(center, kwargs),
          **elastic_variables.copy_arguments(kwargs))
    copies.pair = elastic_pairs.Pair(
        self._values_of(parameter_server_base.unwrapped(copies)), center,
        copies.trainable)
    self._exchange().add(copies.pair)
    return copies

  def _create_state(self, next_creator, **kwargs):
    return super()._create_variable(next_creator, **kwargs)

  def _without_average(self, variable):
    """The variable, of which it is known only now that it is no float."""
    return variable

  def _key(self):
    if tf1.executing_eagerly_outside_functions():
      return self
    with tf.init_scope():
      return tf1.get_default_graph()

  def _exchange(self) -> elastic_exchange.Exchange:
    """The exchange of what is being built, made when first asked for."""
    key = self._key()
    if key not in self._exchanges:
      with tf.init_scope(), self._on_worker():
        self._exchanges[key] = elastic_exchange.Exchange(
            self._settings, self.num_worker, self._create_local_step())
      if key is self:  # Perhaps in a `tf.function`.
        self._exchanges[key].begin()
    return self._exchanges[key]

  def _call_for_each_replica(self, fn, args, kwargs):
    if self._depth:  # As an optimizer with a loss scale does.
      with self.stepping(self._depth + 1):
        return super()._call_for_each_replica(fn, args, kwargs)
    if self._key() in self._exchanges:
      self._exchange().begin()
    if not tf.executing_eagerly():
      fn = branching.with_merges_in_branches(
          self._container_strategy(), _tf_internals.python_function_of(fn),
          self._alone)
    with self.stepping(1):
      result = super()._call_for_each_replica(fn, args, kwargs)
    exchange = self._exchanges.get(self._key())
    has_train_op = getattr(result, 'train_op', None) is not None
    if exchange is None or not (
        exchange.has_gradients or exchange.counters or has_train_op):
      return result
    if not exchange.has_gradients:
      self._settings.check_without_gradients()
    return self._end_step(exchange, result)

  @contextlib.contextmanager
  def stepping(self, depth: int):
    """Says whether updates are those of a step, or of all that is averaged.

    Args:
      depth: How many calls for each replica are around them.
    """
    outer, self._depth = self._depth, depth
    try:
      yield
    finally:
      self._depth = outer

  def _audit_step(self, result):
    super()._audit_step(result)
    exchange = self._exchanges.get(self._key())
    if exchange is None or not elastic.is_penalty(self._settings.rho):
      return
    for variable, operation in self.unseen_updates(result, exchange.trained):
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
    trained = [value for leaf in tf.nest.flatten(result)
               for value in self._values_of(leaf)
               if not exchange.updates.isdisjoint(
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

    result = tf.nest.map_structure(
        lambda leaf: _tf_internals.regroup(
            tuple(map(ended, self._values_of(leaf)))), result)
    tf.nest.map_structure(_tf_internals.make_fetchable, result)
    return result

  def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
    return super()._update_non_slot(
        colocate_with, self._here(fn), args, kwargs, group)

  def _here(self, fn):
    """`fn`, called for each replica in turn, with effect for those here."""
    if self.only is None:
      return fn
    numbers = itertools.count()

    def run(*args, **kwargs):
      is_here = next(numbers) == self.only
      return fn(*args, **kwargs) if is_here else tf.no_op()

    return run

  def _values_of(self, leaf) -> list:
    strategy = self._container_strategy()
    return list(strategy.experimental_local_results(leaf))

  def _update(self, var, fn, args, kwargs, group):
    var = _tf_internals.own_variable(var)
    update = super()._update
    steps = [parameter_server_base.unwrapped(step) for step in
             tf1.get_collection(tf1.GraphKeys.GLOBAL_STEP)]
    if steps and self._settings.count_steps == 'communications':
      parameter_server_base.refuse_keras_update(
          fn,
          parameter_server_base.COUNTS_STEPS.format('ElasticAverageStrategy'),
          ", or pass count_steps='local'")
      step = parameter_server_base.unwrapped(var)
      if any(step is each for each in steps) and self._depth:
        if not self.only:  # Once for all replicas.
          self._exchange().counters.append(
              (step, functools.partial(
                  update, var, fn, args, kwargs, group=False)))
        # For whoever asked to advance it; nothing is read unless it is used.
        result = _tf_internals.read_after(self._values_of(step)[0], tf.no_op())
        return result if group else (result,)
    result = update(var, self._here(fn), args, kwargs, group)
    if self._key() in self._exchanges and not tf.executing_eagerly():
      self._exchange().updates.update(graph_order.operations_of(
          value for leaf in tf.nest.flatten(result)
          for value in self._values_of(leaf)))
    return result
