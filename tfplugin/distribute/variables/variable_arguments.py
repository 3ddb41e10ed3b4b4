# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arguments of a variable creator, and the variable's use that they show."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def is_trainable(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments ask for a trainable variable.

  `tf.Variable` passes `trainable=None` on. Then a variable is trainable unless
  it is synchronised on reading, which is TensorFlow's own rule.
  """
  trainable = kwargs.get('trainable')
  if trainable is None:
    return (kwargs.get('synchronization') !=
            tf.VariableSynchronization.ON_READ)
  return bool(trainable)


def is_metric(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments are for a metric."""
  collections = kwargs.get('collections') or ()
  return tf1.GraphKeys.METRIC_VARIABLES in collections or _is_sum(kwargs)


def is_streaming(kwargs: dict[str, Any]) -> bool:
  """Returns whether the arguments are for a metric, or for a local variable."""
  return is_local(kwargs) or _is_sum(kwargs)


def is_local(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments ask for a local variable."""
  collections = kwargs.get('collections') or ()
  return (tf1.GraphKeys.LOCAL_VARIABLES in collections or
          tf1.GraphKeys.METRIC_VARIABLES in collections)


def is_global_step(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments ask for the global step."""
  return tf1.GraphKeys.GLOBAL_STEP in (kwargs.get('collections') or ())


def _is_sum(kwargs: dict[str, Any]) -> bool:
  """Returns whether replicas add to the variable, as to a metric of Keras."""
  return (kwargs.get('synchronization') == tf.VariableSynchronization.ON_READ
          and kwargs.get('aggregation') in (tf.VariableAggregation.SUM,
                                            tf1.VariableAggregation.SUM))
