# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Creation and updates of variables under elastic averaging."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute import prompt_start
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.elastic import start_barrier

tf1 = tf.compat.v1

Role = elastic_variables.Role


class ElasticAverageExtended(parameter_server_base.ParameterServerExtended):
  """Every averaged variable has a copy on the worker and a centre on a ps."""

  def __init__(self, container_strategy, cluster_resolver,
               settings: elastic_settings.ElasticSettings, devices=None):
    """Reads the cluster; see the base class.

    Args:
      container_strategy: The strategy that this implements.
      cluster_resolver: Describes the cluster; an empty one is one process.
      settings: The rule's settings.
      devices: The devices that compute, outside a cluster.
    """
    super().__init__(
        container_strategy,
        cluster_resolver=cluster_resolver,
        compute_devices=devices)
    self._settings = settings
    self._exchanges = per_graph.PerGraph()

  def _exchange(self) -> elastic_exchange.ElasticExchange:
    """The exchange of the default graph, made when first asked for."""
    graph = tf1.get_default_graph()
    if graph not in self._exchanges:
      self._exchanges[graph] = elastic_exchange.ElasticExchange(
          self._create_local_step(), self._settings.communication_period,
          self._settings.rate(self.num_worker), self._settings.rho,
          self._settings.sparse_exchange)
    return self._exchanges[graph]

  def _create_local_step(self) -> tf.Variable:
    """The step counter, which starts when this worker may start."""
    ready = []
    with tf.init_scope(), tf1.name_scope(None):
      if self._settings.synchronous and self._in_multi_worker_mode():
        barrier = start_barrier.StartBarrier(
            self.task.num_workers,
            self.parameter_devices[0])
        ready = [prompt_start.wait_for_all(
            barrier, self.task.training_index)]
      with self._on_worker(), tf1.control_dependencies(ready):
        zero = tf.zeros([], tf.int64)
        return elastic_variables.local_variable(zero, 'local_step')

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self._settings.num_worker or self.task.num_workers

  def _create_variable(self, next_creator, **kwargs):
    role = elastic_variables.role_of(kwargs, self._settings.statistics)
    if role in (Role.SHARED, Role.LOCAL):
      return super()._create_variable(next_creator, **kwargs)
    if role is Role.STATE:
      kwargs['collections'] = self._state_collections(kwargs)
      return super()._create_variable(next_creator, **kwargs)
    # The body of a loop may make a variable; the copy starts from the centre.
    with tf.init_scope():
      return self._create_pair(next_creator, **kwargs)

  def _state_collections(self, kwargs):
    """The chief's optimizer state is saved; the other workers' is local."""
    collections = kwargs.get('collections') or [
        tf1.GraphKeys.GLOBAL_VARIABLES]
    if self.experimental_should_init:
      return collections
    return elastic_variables.localized(collections)

  def _create_pair(self, next_creator, **kwargs):
    trainable = elastic_variables.is_trainable(kwargs)
    collections = elastic_variables.localized(kwargs.get('collections'))
    with self._on(self._variable_device):
      center = next_creator(**dict(
          kwargs, trainable=False,
          collections=[tf1.GraphKeys.GLOBAL_VARIABLES]))
    if not center.dtype.is_floating:
      return center

    def create_copy(**kwargs):
      with self._on_worker():
        return elastic_variables.LocalCopy(
            center, **elastic_variables.copy_arguments(kwargs))

    kwargs.update(collections=collections, trainable=trainable)
    copy = self._create_var_creator(create_copy, **kwargs)(**kwargs)
    pair = elastic_variables.ElasticPair(
        local=parameter_server_base.unwrapped(copy),
        center=center,
        trainable=trainable,
        local_center=self._create_local_center(center, trainable))
    self._exchange().add(pair)
    return copy

  def _create_local_center(self, center, trainable):
    if not trainable or not self._settings.rho:
      return None
    with self._on_worker(), tf1.name_scope(None):
      return elastic_variables.local_variable(
          center.read_value(), f'local_center_variable/{center.op.name}')

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    reduced = super()._batch_reduce_to(reduce_op, value_destination_pairs,
                                       options)
    if not parameter_server_base.updates_variables(value_destination_pairs):
      return reduced
    exchange = self._exchange()
    pairs = [exchange.pair_of(parameter_server_base.unwrapped(destination))
             for _, destination in value_destination_pairs]
    reduced = [value if pair is None else exchange.track_rows(
                   exchange.penalized(value, pair), pair)
               for value, pair in zip(reduced, pairs)]
    if self._settings.update_order != 'elastic_first':
      return reduced
    flat = tf.nest.flatten(reduced, expand_composites=True)
    with tf1.control_dependencies(flat):
      exchanged = exchange.exchange([p for p in pairs if p is not None])
    return [elastic_exchange.after(value, [exchanged]) for value in reduced]

  def _update(self, var, fn, args, kwargs, group):
    if self._settings.count_steps != 'communications':
      return super()._update(var, fn, args, kwargs, group)
    parameter_server_base.refuse_keras_update(
        fn, parameter_server_base.COUNTS_STEPS.format('ElasticAverageStrategy'),
        ", or pass count_steps='local'")
    if _is_global_step(var):
      return self._update_if_communicating(var, fn, args, kwargs, group)
    return super()._update(var, fn, args, kwargs, group)

  def _update_if_communicating(self, var, fn, args, kwargs, group):
    """Counts the step beside the exchange, which is not to wait for the ps."""
    exchange = self._exchange()
    update = super()._update

    def count():
      with tf1.control_dependencies(
          tf.nest.flatten(update(var, fn, args, kwargs, group=False))):
        return tf.constant(True)

    counted = count() if exchange.always_communicates else tf1.cond(
        exchange.communicating, count, lambda: tf.constant(False))
    done = counted.op
    if not exchange.is_finished:
      exchange.counts.append(counted)
      done = tf.no_op()
    result = _tf_internals.read_after(
        parameter_server_base.unwrapped(var), done)
    return result if group else (result,)

  def _finish_step(self, spec):
    exchange = self._exchange()
    with tf1.control_dependencies(self._ops_of_all_replicas(spec.train_op)):
      exchanged = exchange.exchange()
    exchange.is_finished = True
    with tf1.control_dependencies([exchanged, *exchange.counts]):
      advanced = exchange.local_step.assign_add(1, read_value=False)
    return parameter_server_base.with_fields(spec, train_op=advanced)


def _is_global_step(variable) -> bool:
  variable = parameter_server_base.unwrapped(variable)
  return any(parameter_server_base.unwrapped(step) is variable
             for step in tf1.get_collection(tf1.GraphKeys.GLOBAL_STEP))
