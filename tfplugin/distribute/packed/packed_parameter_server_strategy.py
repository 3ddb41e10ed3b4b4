# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous parameter-server training with few messages."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import parameter_server_base


class PackedParameterServerStrategy(
    parameter_server_base.ParameterServerStrategy):
  """Plain parameter-server training that packs small values into messages.

  Trains as `tf.compat.v1.distribute.experimental.ParameterServerStrategy` does,
  with the same values, variables and checkpoints. The variables of up to 32 KiB
  that a worker reads from a server share one message for each type, and so do
  their gradients. The lookups of embedding tables share two messages, for ids
  and for rows, and so do their gradients. TensorFlow sends each tensor as a
  message of its own. It still does so with larger variables and rows, and with
  reads inside branches, loops and functions. The other strategies of tfplugin
  on parameter servers pack, too; this one does nothing else.

  In a cluster, also pass `RunConfig(experimental_max_worker_delay_secs=0)`. By
  default TensorFlow delays worker k by 5 s * (k + 1).

  Args:
    cluster_resolver: A `tf.distribute.cluster_resolver.ClusterResolver`; None
      reads `TF_CONFIG`.

  Raises:
    TypeError: `cluster_resolver` is of another type.
    ValueError: The cluster has no `ps`, or `TF_CONFIG` is wrong.

  Example:
  >>> import tensorflow as tf
  >>> import tfplugin.distribute
  >>> strategy = tfplugin.distribute.PackedParameterServerStrategy()
  >>> config = tf.estimator.RunConfig(train_distribute=strategy)
  """

  def __init__(
      self,
      cluster_resolver: (
          tf.distribute.cluster_resolver.ClusterResolver | None) = None):
    super().__init__(parameter_server_base.ParameterServerExtended(
        self, parameter_server_base.resolver_or_default(cluster_resolver)))
