# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that starts a worker under elastic averaging from the centre."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_start

tf1 = tf.compat.v1


class ElasticAverageHook(elastic_start.ElasticInitialization):
  """Gives a worker's copies the centre's values whenever it gets a session.

  The same as `optimizer.make_session_run_hook`. Every worker needs it, and the
  chief. A worker that starts late, or restarts after a failure, begins at the
  centre. With `synchronous=True` the workers then wait for each other, once in
  the life of the parameter servers. Later workers do not wait.

  Raises:
    TimeoutError: from `after_create_session`, when the other workers did not
      start within the limit; the message names them.

  Example:
    >>> with tf.Graph().as_default():
    ...   getter = tfplugin.ElasticAverageCustomGetter('')
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.1), 1, getter)
    ...   hook = ElasticAverageHook(optimizer, task_index=0)
  """
