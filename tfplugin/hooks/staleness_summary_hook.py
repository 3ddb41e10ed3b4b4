# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that writes staleness and dropped gradients for TensorBoard."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.hooks import summary_writer_hook
from tfplugin.ops import staleness
from tfplugin.optimizers import drop_stale_gradient


class StalenessSummaryHook(summary_writer_hook.SummaryWriterHook):
  """Writes how much a `DropStaleGradientOptimizer` drops on this worker.

  Scalars written, against global_step:
    staleness/staleness: the last step's, in global steps.
    staleness/dropped_fraction: of this worker's gradients so far, in [0, 1].
    staleness/num_dropped, staleness/num_applied: this worker's counters.
    staleness/stale_counter: the drops of all workers.

  Raises:
    RuntimeError: from `begin`, when the graph has no global step.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> with tf.Graph().as_default():
    ...   step = tf.compat.v1.train.get_or_create_global_step()
    ...   weight = tf.compat.v1.get_variable('weight', initializer=3.0)
    ...   optimizer = tfplugin.DropStaleGradientOptimizer(
    ...       tf.compat.v1.train.AdamOptimizer(0.1), staleness=4)
    ...   train_op = optimizer.minimize(weight * weight, global_step=step)
    ...   hook = hooks.StalenessSummaryHook(optimizer, 'a_model_dir')
    >>> # tf.estimator.EstimatorSpec(..., training_hooks=[hook])
  """

  optimizer_class = drop_stale_gradient.DropStaleGradientOptimizer

  def scalars(self) -> dict[str, tf.Tensor]:
    """See base class."""
    num_dropped = self._optimizer.num_dropped
    num_applied = self._optimizer.num_applied
    return {
        'staleness/staleness': self._optimizer.staleness,
        'staleness/dropped_fraction': staleness.dropped_fraction(
            num_dropped, num_applied),
        'staleness/num_dropped': num_dropped,
        'staleness/num_applied': num_applied,
        'staleness/stale_counter': self._optimizer.stale_counter.read_value(),
    }
