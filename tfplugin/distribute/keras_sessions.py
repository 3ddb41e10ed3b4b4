# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Keras does with a strategy in a graph, which not every one can."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class NoKerasSessions:
  """Goes in front of a strategy's class that Keras cannot train with in graphs.

  Without eager execution `Model.compile` configures a session for the strategy
  whose scope it is in; in that session it would initialise variables in its own
  way. An Estimator configures a strategy before it enters the scope, and a
  metric inside of a model_fn, in a replica, may ask for a session of its own.
  """

  def configure(self, *args: Any, **kwargs: Any) -> None:
    """See `tf.distribute.Strategy.configure`; not for Keras.

    Raises:
      RuntimeError: In the scope of a strategy, and in no replica.
    """
    if (tf.distribute.has_strategy() and
        tf.distribute.in_cross_replica_context()):
      raise RuntimeError(
          f'{self.described_as} does not train by `Model.fit` in a graph. '
          'Received: `Model.compile` without eager execution. Use an '
          'Estimator, such as that of `tf.keras.estimator.model_to_estimator`, '
          'or v2 behaviour.')
    super().configure(*args, **kwargs)
