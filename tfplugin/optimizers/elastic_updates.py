# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One optimizer's part of a step with elastic averaging."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_scope
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.ops import elastic
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class ElasticUpdates(wrapper.OptimizerWrapper):
  """Applies gradients to the copies; the step ends with the exchange.

  Gradients that are not finite are treated as the settings say. A step that
  drops them is none: it does not count, and does not communicate.
  """

  def __init__(self, optimizer: tf1.train.Optimizer,
               scope: elastic_scope.ElasticScope,
               exchange: elastic_exchange.Exchange, rho: elastic.Rate):
    """Takes its part.

    Args:
      optimizer: The optimizer that trains the copies.
      scope: Has made them.
      exchange: Ends the step.
      rho: The strength of the penalty that is to be added.

    Raises:
      RuntimeError: The optimizer is a `SyncReplicasOptimizer`.
    """
    if isinstance(optimizer, tf1.train.SyncReplicasOptimizer):
      elastic_settings.refuse_synchronous(optimizer.get_name())
    super().__init__(optimizer, False, optimizer.get_name())
    self._scope = scope
    self._exchange = exchange
    self._rho = rho
    self._is_looking = exchange.finite.is_asked

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      skip_gradients_aggregation=False):
    """See the base class."""
    if self._is_looking:
      self._is_looking = False
      more = ({'skip_gradients_aggregation': True}
              if skip_gradients_aggregation else {})
      with self._scope.local_state():
        return self._exchange.finite.apply(
            self, grads_and_vars, global_step, name, self._exchange.start,
            **more)
    return self._scope.apply(
        self._exchange, super().apply_gradients, grads_and_vars,
        global_step, self._rho, name=name,
        skip_gradients_aggregation=skip_gradients_aggregation)

  def _create_slots(self, var_list):
    with self._scope.local_state():
      super()._create_slots(var_list)
