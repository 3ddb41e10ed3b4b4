# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a variable creator tell the use of the variable."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def is_trainable(kwargs: dict[str, Any]) -> bool:
  """Whether the arguments ask for a trainable variable.

  `tf.Variable` hands on `trainable=None`: then a variable is trainable unless
  it is synchronised on reading, TensorFlow's own rule.

  Args:
    kwargs: The arguments of the variable creator.
  """
  trainable = kwargs.get('trainable')
  if trainable is None:
    return (kwargs.get('synchronization') !=
            tf.VariableSynchronization.ON_READ)
  return bool(trainable)


def is_metric(kwargs: dict[str, Any]) -> bool:
  """Whether the variable says of itself that it accumulates a metric.

  Args:
    kwargs: The arguments of the variable creator.
  """
  collections = kwargs.get('collections') or ()
  return tf1.GraphKeys.METRIC_VARIABLES in collections or _is_sum(kwargs)


def is_streaming(kwargs: dict[str, Any]) -> bool:
  """Whether the variable accumulates a metric, or is local and may do so.

  Args:
    kwargs: The arguments of the variable creator.
  """
  keys = tf1.GraphKeys
  collections = set(kwargs.get('collections') or ())
  return bool({keys.METRIC_VARIABLES, keys.LOCAL_VARIABLES} & collections) or (
      _is_sum(kwargs))


def _is_sum(kwargs: dict[str, Any]) -> bool:
  """Whether replicas add to the variable, as to a metric of Keras."""
  return (kwargs.get('synchronization') == tf.VariableSynchronization.ON_READ
          and kwargs.get('aggregation') in (tf.VariableAggregation.SUM,
                                            tf1.VariableAggregation.SUM))
