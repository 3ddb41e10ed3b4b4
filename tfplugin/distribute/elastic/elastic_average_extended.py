# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Creation and updates of variables under elastic averaging."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_steps
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.elastic.values import first_values

tf1 = tf.compat.v1

Role = elastic_variables.Role


class ElasticAverageExtended(elastic_steps.ElasticSteps,
                             parameter_server_base.ParameterServerExtended):
  """StrategyExtended with copies on the worker and centres on a ps."""

  is_replicated = False

  def _create_exchange(self):
    if self._in_multi_worker_mode():
      self._signals.here(lambda: first_values.create_signal(
          self.parameter_devices[0], self.experimental_should_init,
          is_awaited=not self._settings.synchronous))
    return super()._create_exchange()

  def _create_local_step(self) -> tf.Variable:
    """Makes the step counter, which starts when this worker may start."""
    return elastic_start.create_local_step(
        self.own_device, self._settings, self.task, self.parameter_devices[0])

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self._settings.num_worker or self.task.num_workers

  def _on_server(self):
    return self._on(self._variable_device)

  def _create_state(self, next_creator, **kwargs):
    if not self.experimental_should_init:  # The worker initialises it again.
      kwargs['collections'] = elastic_variables.localized(
          kwargs.get('collections'))
    if kwargs.get('colocate_with') is None:
      return self._create_copies(next_creator, **kwargs)
    return super()._create_state(next_creator, **kwargs)

  def _create_copies(self, create_copy, **kwargs):
    with self._on_worker():
      return self._create_var_creator(create_copy, **kwargs)(**kwargs)
