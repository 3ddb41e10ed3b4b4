# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables and steps of both elastic strategies.

The optimizer and the decorator have `optimizers/elastic_updates.py` for this.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute import refusals
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.distribute.elastic.values import first_values
from tfplugin.distribute.updates import intercepted_updates
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.ops import elastic
from tfplugin.ops import nonfinite

tf1 = tf.compat.v1

Role = elastic_variables.Role


class ElasticExtendedMixin(intercepted_updates.InterceptedUpdates):
  """Mixin that makes each replica call of an extended class one step.

  The extended class provides the centre's device (`_on_server`) and the
  worker's (`_on_worker`). It makes copies of a centre (`_create_copies`) and
  the step counter (`_create_local_step`). It counts the workers (`num_worker`).

  A step that applied gradients ends with the exchange, if one is due. In eager
  mode and in a `tf.function` the exchange runs before the next line. In a graph
  it runs before all returned values that depend on an update.
  """

  def __init__(self, container_strategy,
               settings: elastic_settings.ElasticSettings, **kwargs):
    """Stores the settings; `kwargs` are for the base class."""
    super().__init__(container_strategy, **kwargs)
    self._settings = settings
    # One for each graph, and one for eager execution.
    self._exchanges = per_graph.PerGraph()
    # Tell the workers of a cluster that the chief's hooks have written.
    self._signals = per_graph.PerGraph()
    # The names of optimizers' variables; these would keep their graph alive.
    self._states = per_graph.PerGraph()

  def _create_variable(self, next_creator, **kwargs):
    role = elastic_variables.role_of(kwargs, self._settings.statistics)
    if role is Role.STATE:
      state = self._create_state(next_creator, **kwargs)
      self._states.for_current_graph(set).update(
          each.name.partition(':')[0] for each in self._local_results(state))
      return state
    exchange = self._exchanges.for_current_graph()
    is_late = exchange is not None and exchange.is_built and (
        tf.distribute.in_cross_replica_context())  # A hook makes it.
    if role is not Role.ELASTIC or is_late:
      return super()._create_variable(next_creator, **kwargs)
    # Not in the body of a loop, which may make a variable.
    with tf.init_scope():
      with self._on_server():
        center = elastic_variables.center_of(next_creator, kwargs)
      if not center.dtype.is_floating:
        return self._without_average(center)
      copies = self._create_copies(
          functools.partial(elastic_variables.copy_of, center),
          **elastic_variables.copy_arguments(kwargs))
    copies.pair = elastic_pairs.Pair(
        self._local_results(parameter_server_base.unwrapped(copies)), center,
        copies.trainable)
    elastic_variables.note_copies(copies, copies.pair.copies)
    self._exchange().add(copies.pair)
    return copies

  def _validate_colocate_with_variable(self, colocate_with_variable):
    if isinstance(colocate_with_variable, tf.Operation):
      # `SyncReplicasOptimizer` places its local step so.
      elastic_settings.refuse_synchronous(
          f'a variable beside {colocate_with_variable.name}')
    super()._validate_colocate_with_variable(colocate_with_variable)

  def _create_state(self, next_creator, **kwargs):
    return super()._create_variable(next_creator, **kwargs)

  def _without_average(self, variable):
    """Handles a variable that turned out not to be floating point."""
    return variable

  def _exchange(self) -> elastic_exchange.Exchange:
    """Returns the exchange of the current graph, made on first use."""
    exchange = self._exchanges.for_current_graph()
    if exchange is None:
      exchange = self._exchanges.for_current_graph(self._create_exchange)
      if tf1.executing_eagerly_outside_functions():
        exchange.begin_step()  # In the current `tf.function`, if any.
    return exchange

  def _create_exchange(self):
    with self._on_worker():
      return elastic_exchange.Exchange(
          self._settings, self.num_worker, self._create_local_step())

  def _call_for_each_replica(self, fn, args, kwargs):
    if self._is_in_step:  # An optimizer with a loss scale calls replicas again.
      return super()._call_for_each_replica(fn, args, kwargs)
    if self._exchanges.for_current_graph() is not None:
      self._exchange().begin_step()
    if self._settings.on_nonfinite != nonfinite.APPLY:
      fn = self._with_finite_check(fn)
    if self._alone is not None:  # On parameter servers the base class does it.
      fn = branching.with_merges_in_branches(
          self._container_strategy(), fn, self._alone)
    result = super()._call_for_each_replica(fn, args, kwargs)
    exchange = self._exchanges.for_current_graph()
    has_train_op = getattr(result, 'train_op', None) is not None
    if exchange is None or not (
        exchange.has_gradients or exchange.counters or has_train_op):
      return result
    if not exchange.has_gradients:
      self._settings.check_without_gradients()
    exchange.inputs = graph_order.operations_of(tf.nest.flatten(
        [self._local_results(leaf) for leaf in tf.nest.flatten((args, kwargs))],
        expand_composites=True))
    return self._end_step(exchange, result)

  def _with_finite_check(self, fn):
    """Returns `fn` with optimizers that apply only finite gradients."""

    def looking(*args, **kwargs):
      with optimizer_interception.Interception(
          lambda optimizer: _FiniteChecked(optimizer, self._exchange),
          _FiniteChecked).active():
        return fn(*args, **kwargs)

    return looking

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    if not parameter_server_base.updates_variables(value_destination_pairs):
      return super()._batch_reduce_to(
          reduce_op, value_destination_pairs, options)
    # Each device's copy has separate gradients.
    gradients = ([value for value, _ in value_destination_pairs]
                 if self.is_replicated else super()._batch_reduce_to(
                     reduce_op, value_destination_pairs, options))
    copies = [self._copies_here(variable)
              for _, variable in value_destination_pairs]
    values = [self._local_results(gradient) for gradient in gradients]
    # All devices may share one gradient.
    flat = [pair for each, own in zip(values, copies)
            for pair in zip(each * (len(own) // len(each)), own)]
    adjusted = self._exchange().adjusted(flat, self._settings.rho)
    touched = self._exchange().touched(adjusted)
    adjusted = iter([(elastic_pairs.after(g, touched), v)
                     for g, v in adjusted] if touched else adjusted)
    return [_tf_internals.regroup([next(adjusted)[0] for _ in own])
            for own in copies]

  def _copies_here(self, variable):
    copies = self._local_results(parameter_server_base.unwrapped(variable))
    return copies if self.only is None else [copies[self.only]]

  def _step_is_built(self, result):
    super()._step_is_built(result)
    exchange = self._exchanges.for_current_graph()
    if exchange is not None and elastic.is_penalty(self._settings.rho):
      self.refuse_unaudited(result, exchange.trained, elastic_exchange.AUDITED)

  def _end_step(self, exchange, result):
    if tf.executing_eagerly() or tf.inside_function():
      exchange.end_step([])
      return result
    if not hasattr(result, 'training_hooks'):
      self._settings.check_has_hooks(result)
    if not hasattr(result, 'train_op'):
      return self._end_results(exchange, result)
    pairs = exchange.pairs
    elastic_start.refuse_centers(pairs, self._settings, *(
        self._local_results(getattr(result, field, None))
        for field in ('loss', 'train_op')))
    changed = {'train_op': exchange.end_of_model_fn(
        self._local_results(result.train_op),
        self._states.for_current_graph(set))}
    exchange.is_built = True
    if hasattr(result, 'training_hooks'):
      changed['training_hooks'] = first_values.around(
          (*result.training_hooks, *separate_run.hooks_of(exchange.runs)),
          self._first_hooks(exchange, pairs))
    if self.experimental_should_init and hasattr(result, 'scaffold'):
      changed['scaffold'] = _tf_internals.regroup(tuple(
          elastic_start.scaffold_for_centers(scaffold, pairs)
          for scaffold in self._local_results(result.scaffold)))
    return parameter_server_base.with_started_scaffolds(
        self._container_strategy(),
        parameter_server_base.with_fields(result, **changed))

  def _first_hooks(self, exchange, pairs) -> list:
    """Returns the hook for values that are written before the first step."""
    signal = self._signals.for_current_graph()
    waits = signal is not None and self._settings.synchronous
    return first_values.hooks_of(
        pairs, exchange.local_step.device, signal,
        self.experimental_should_init,
        self.task.training_tasks[0] if waits else None)

  def _end_results(self, exchange, result):
    """Returns `result`, in which the trained values wait for the step's end."""
    trained = [value for leaf in tf.nest.flatten(result)
               for value in self._local_results(leaf)
               if graph_order.updates(
                   graph_order.operations_of([value]), *exchange.trained)]
    if not trained:
      raise RuntimeError(
          'The function that ElasticAverageStrategy runs must return an '
          'EstimatorSpec, or its train_op, which ends with the exchange. '
          f'Received: {result!r}, of which no part depends on an update of a '
          'variable. Return the result of `minimize` or `apply_gradients`, '
          'too.')
    done, waiting = exchange.end_step(trained), set(map(id, trained))
    result = tf.nest.map_structure(lambda leaf: _tf_internals.regroup(tuple(
        elastic_pairs.after(value, [done]) if id(value) in waiting else value
        for value in self._local_results(leaf))), result)
    tf.nest.map_structure(_tf_internals.make_fetchable, result)
    return result

  def _update(self, var, fn, args, kwargs, group):
    var = _tf_internals.own_variable(var)
    update = super()._update
    if self._is_in_step:
      refusals.refuse_keras_3_update(
          fn, self._container_strategy(),
          'it sums the gradients of all devices, of which each has its own')
    step = parameter_server_base.global_step()
    if step is not None and self._settings.count_steps == 'communications':
      refusals.refuse_keras_step_count(
          fn, self._container_strategy(), ", or pass count_steps='local'")
      if self._is_in_step and parameter_server_base.unwrapped(var) is step:
        if not self.only:  # Once for all replicas.
          self._exchange().count(step, functools.partial(
              update, var, fn, args, kwargs, group=False))
        # The caller's result; nothing is read unless it is used.
        result = _tf_internals.read_after(
            self._local_results(step)[0], tf.no_op())
        return result if group else (result,)
    return update(var, fn, args, kwargs, group)


class _FiniteChecked:
  """Optimizer of a replica that checks its gradients first."""

  def __init__(self, optimizer, exchange):
    self._optimizer = optimizer
    self._exchange = exchange

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      **kwargs):
    """Applies the gradients if they are finite."""
    exchange = self._exchange()
    return exchange.finite.apply(self._optimizer, grads_and_vars, global_step,
                                 name, exchange.steps_before, **kwargs)
