# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shows in TensorBoard how far a worker is from the centre."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.optimizers import elastic_average

tf1 = tf.compat.v1

TAG = 'elastic_distance'


class ElasticDistanceHook(tf1.train.SummarySaverHook):
  """Writes |local - centre| over all trainable variables as a summary.

  The loss that a worker reports is that of its own copy; this says how far that
  is from what will be saved. A distance that grows without bound means that the
  moving rate is too small for the communication period, or out of the stable
  range. Writing reads the whole centre once.

  Example:
    >>> with tf.Graph().as_default():
    ...   _ = tf.compat.v1.train.create_global_step()
    ...   getter = tfplugin.ElasticAverageCustomGetter('')
    ...   with getter.scope():
    ...     w = tf.Variable([3.0, 4.0])
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.1), 1, getter)
    ...   hook = ElasticDistanceHook(optimizer, 'a_model_dir', save_steps=50)
  """

  def __init__(self, optimizer: elastic_average.ElasticAverageOptimizer,
               output_dir: str, save_steps: int = 100):
    """Prepares to write; to be made after the model.

    Args:
      optimizer: The optimizer that trains the model.
      output_dir: Where the event files go: the model_dir.
      save_steps: Write every so many global steps.

    Raises:
      RuntimeError: the model does not exist yet.
    """
    # In no collection: it is not to be written with the other summaries too.
    summary = tf1.summary.scalar(TAG, optimizer.elastic_distance(),
                                 collections=[])
    super().__init__(save_steps=save_steps, output_dir=output_dir,
                     summary_op=summary)
