# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that writes the fraction of clipped slices for TensorBoard."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.hooks import summary_writer_hook
from tfplugin.optimizers import variable_clipping


class ClippingSummaryHook(summary_writer_hook.SummaryWriterHook):
  """Writes how much a `VariableClippingOptimizer` clips.

  The value belongs to an update. Every `session.run` of a session with this
  hook must therefore make a training step, as with Estimator.

  Scalars written, against global_step:
    clipping/fraction_clipped: of the slices that the last step checked.

  Raises:
    RuntimeError: from `begin`, when the graph has no global step, or no update
      of the optimizer that a session can fetch.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> with tf.Graph().as_default():
    ...   step = tf.compat.v1.train.get_or_create_global_step()
    ...   table = tf.compat.v1.get_variable('table', [5, 4])
    ...   optimizer = tfplugin.VariableClippingOptimizer(
    ...       tf.compat.v1.train.AdamOptimizer(0.1), {'table': 1}, max_norm=2.0)
    ...   train_op = optimizer.minimize(tf.reduce_sum(table), global_step=step)
    ...   hook = hooks.ClippingSummaryHook(optimizer, 'a_model_dir')
    >>> # tf.estimator.EstimatorSpec(..., training_hooks=[hook])
  """

  optimizer_class = variable_clipping.VariableClippingOptimizer

  def scalars(self) -> dict[str, tf.Tensor]:
    """See base class."""
    fraction = self._optimizer.fraction_clipped
    if fraction is None:
      raise RuntimeError(
          'ClippingSummaryHook found no update of its optimizer in this graph. '
          'Call `minimize()` first; under a strategy there is no fraction.')
    return {'clipping/fraction_clipped': fraction}
