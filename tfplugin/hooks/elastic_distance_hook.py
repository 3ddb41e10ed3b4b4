# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that writes a worker's distance from the centre for TensorBoard."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.optimizers import elastic_average

tf1 = tf.compat.v1

TAG = 'elastic_distance'


class ElasticDistanceHook(tf1.train.SummarySaverHook):
  """Writes |local - centre| over all trainable variables as a summary.

  A worker reports the loss of its own copy, while the centre is saved. The
  scalar `elastic_distance` is the distance between the two. If the distance
  grows without bound, the moving rate is too small for `communication_period`,
  or out of the stable range. Each write reads the whole centre once.

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
    """Prepares to write; make the hook after the model.

    Args:
      optimizer: The optimizer that trains the model.
      output_dir: The directory of the event files: the model_dir.
      save_steps: The interval of the points in global steps.

    Raises:
      RuntimeError: the model does not exist yet.
    """
    # In no collection, as other hooks write the summaries of the collections.
    summary = tf1.summary.scalar(TAG, optimizer.elastic_distance(),
                                 collections=[])
    super().__init__(save_steps=save_steps, output_dir=output_dir,
                     summary_op=summary)
