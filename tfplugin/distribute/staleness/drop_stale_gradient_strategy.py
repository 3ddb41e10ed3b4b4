# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training that drops stale gradients, as a strategy."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.staleness import drop_stale_gradient_extended
from tfplugin.ops import nonfinite
from tfplugin.ops import staleness as staleness_ops


class DropStaleGradientStrategy(parameter_server_base.ParameterServerStrategy):
  """Parameter-server training in which stale gradients are dropped.

  Variables, slots and checkpoints are as with
  `tf.compat.v1.distribute.experimental.ParameterServerStrategy` and without a
  strategy: nothing is added to a checkpoint. In each step

      staleness = global_step when applying - global_step when the step began

  If it exceeds `staleness`, the optimizer does not change the variables, its
  slots or global_step. The step is read before the first variable is. One
  decision holds for all variables and all optimizers of the step. In a dropped
  step the model's own assignments, such as batch norm's moving averages, still
  happen; only global_step does not advance. The worker's own advance of
  global_step is not staleness. Accumulated gradients are as stale as the step
  that applies them.

  Every worker counts its steps in the local int64 variables
  `stale_gradients/num_applied` and `stale_gradients/num_dropped`. The chief
  writes the summary `stale_gradients/dropped_fraction`, in [0, 1].

  In a cluster, also pass `RunConfig(experimental_max_worker_delay_secs=0)`. By
  default TensorFlow delays worker k by 5 s * (k + 1).

  Checking and applying are not one atomic action, so two workers may pass the
  check together. An applied gradient can then exceed the bound by the number of
  updates in flight, at most one per other worker.

  Args:
    cluster_resolver: A `tf.distribute.cluster_resolver.ClusterResolver`; None
      reads `TF_CONFIG`. Without a cluster nothing is ever stale.
    staleness: The largest staleness that is applied, in global steps.
    on_nonfinite: The policy for gradients with a NaN or an infinity.
      `'apply'` applies them, as without the strategy. `'drop'` drops them, and
      counts them separately, in `stale_gradients/num_nonfinite`, with the
      summary `stale_gradients/nonfinite`. `'raise'` raises an error that names
      the worker, the step and the variables.

  Raises:
    TypeError: `staleness` is not an integer.
    ValueError: `staleness` is negative, `on_nonfinite` another word, or the
      cluster has no `ps`.

  Example:
  >>> strategy = tfplugin.distribute.DropStaleGradientStrategy(staleness=4)
  >>> strategy.staleness
  4

  Differences from tf.contrib: the optimizer there read the step after the
  forward pass had begun, and so treated some stale gradients as fresh.
  """

  def __init__(
      self,
      cluster_resolver: Optional[
          tf.distribute.cluster_resolver.ClusterResolver] = None,
      *,
      staleness: int,
      on_nonfinite: str = nonfinite.APPLY):
    self._staleness = staleness_ops.check_max_staleness(staleness)
    super().__init__(
        drop_stale_gradient_extended.DropStaleGradientExtended(
            self, parameter_server_base.resolver_or_default(cluster_resolver),
            self._staleness, nonfinite.check_policy(on_nonfinite)))

  @property
  def staleness(self) -> int:
    """The largest staleness that is applied."""
    return self._staleness
