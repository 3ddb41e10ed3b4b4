# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Creation and updates of variables under elastic averaging."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_saving
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_steps
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

Role = elastic_variables.Role


class ElasticAverageExtended(elastic_steps.ElasticSteps,
                             parameter_server_base.ParameterServerExtended):
  """Every averaged variable has a copy on the worker and a centre on a ps."""

  is_replicated = False

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

  def _create_local_step(self) -> tf.Variable:
    """The step counter, which starts when this worker may start."""
    ready = elastic_start.when_all_are_ready(
        self._settings, self.task, self.parameter_devices[0])
    return elastic_start.create_local_step(self._device, ready)

  @property
  def _device(self) -> str:
    """The device of what a worker has once, however many devices it has."""
    devices = self._compute_devices
    return devices[0] if len(devices) == 1 else self._worker_device

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self._settings.num_worker or self.task.num_workers

  def _create_variable(self, next_creator, **kwargs):
    role = elastic_variables.role_of(kwargs, self._settings.statistics)
    if role in (Role.SHARED, Role.LOCAL):
      return super()._create_variable(next_creator, **kwargs)
    if role is Role.STATE:
      kwargs['collections'] = elastic_saving.state_collections(
          kwargs.get('collections'), self.experimental_should_init)
      return super()._create_variable(next_creator, **kwargs)
    # The body of a loop may make a variable; the copy starts from the centre.
    with tf.init_scope():
      return self._create_pair(next_creator, **kwargs)

  def _create_pair(self, next_creator, **kwargs):
    with self._on(self._variable_device):
      center = elastic_variables.center_of(next_creator, kwargs)
    if not center.dtype.is_floating:
      return center

    def create_copy(**kwargs):
      with self._on_worker():
        return elastic_variables.copy_of(center, kwargs)

    kwargs.update(collections=elastic_variables.localized(
        kwargs.get('collections')), trainable=variable_arguments.is_trainable(
            kwargs))
    copy = self._create_var_creator(create_copy, **kwargs)(**kwargs)
    pair = elastic_pairs.Pair((parameter_server_base.unwrapped(copy),),
                              center, kwargs['trainable'])
    if pair.trainable and self._settings.rho:
      with self._on_worker():
        pair.local_center = elastic_variables.local_center(center)
    self._exchange().add(pair)
    return copy

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    reduced = super()._batch_reduce_to(reduce_op, value_destination_pairs,
                                       options)
    if not parameter_server_base.updates_variables(value_destination_pairs):
      return reduced
    copies = [parameter_server_base.unwrapped(destination)
              for _, destination in value_destination_pairs]
    return [gradient for gradient, _ in self._exchange().adjusted(
        list(zip(reduced, copies)))]
