# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper of updates, for the elastic optimizer and the elastic decorator.

Strategies have `distribute/elastic/elastic_steps.py` for this.
"""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.ops import elastic
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class ElasticUpdates(wrapper.OptimizerWrapper):
  """Wrapper that applies gradients to the copies, then exchanges.

  Gradients that are not finite are handled by the policy of the settings. A
  dropped step is not counted and does not exchange.
  """

  def __init__(self, optimizer: tf1.train.Optimizer,
               scope: elastic_variables.ElasticScope,
               exchange: elastic_exchange.Exchange, rho: elastic.Rate):
    """Wraps `optimizer`; `rho` is the penalty that is still to be added."""
    if isinstance(optimizer, tf1.train.SyncReplicasOptimizer):
      elastic_settings.refuse_synchronous(optimizer.get_name())
    super().__init__(optimizer, False, optimizer.get_name())
    self._scope = scope
    self._exchange = exchange
    self._rho = rho
    self._is_checking = exchange.finite is not None

  @classmethod
  def of_scope(cls, optimizer: tf1.train.Optimizer,
               scope: elastic_variables.CopyScope) -> ElasticUpdates:
    """Wraps an optimizer of a model_fn that is built in `scope`."""
    return cls(optimizer, scope, scope.exchange, scope.settings.rho_for(
        optimizer, scope.task.num_workers))

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      skip_gradients_aggregation=False):
    """See base class."""
    if self._is_checking:
      self._is_checking = False  # In the branch that applies.
      try:
        with self._scope.local_state():
          return self._exchange.finite.apply(
              self, grads_and_vars, global_step, name,
              self._exchange.steps_before,
              skip_gradients_aggregation=skip_gradients_aggregation)
      finally:
        self._is_checking = True
    grads_and_vars = [(gradient, _tf_internals.own_variable(variable))
                      for gradient, variable in grads_and_vars]
    self._exchange.add(*self._scope.pairs_of(
        [v for g, v in grads_and_vars if g is not None]))
    self._scope.has_statistics = True
    adjusted = self._exchange.adjusted(grads_and_vars, self._rho)
    counted = self._exchange.step_of(global_step)
    if _tf_internals.assigns_by_itself(_innermost(self._optimizer)):
      counted = global_step  # It may read the step, and advance it itself.
    with self._scope.local_state():
      update = self._apply_wrapped(
          adjusted, counted, name, skip_gradients_aggregation)
    with tf1.control_dependencies([] if update is None else [update]):
      touched = self._exchange.touched(adjusted)
      return tf.group(touched) if touched else update

  def _create_slots(self, var_list):
    with self._scope.local_state():
      super()._create_slots(var_list)


def _innermost(optimizer):
  """Returns the optimizer inside all wrappers."""
  while (inner := _tf_internals.wrapped_optimizer(optimizer)) is not None:
    optimizer = inner
  return optimizer
