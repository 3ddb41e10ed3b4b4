# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads rows of a variable."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import branching


def gather(variable: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
  """Reads rows as they are now, after the current control dependencies.

  `tf.gather` of a reference variable takes what the model reads: with a
  `caching_device` on the worker that is a copy from before an update of the
  same step.

  Args:
    variable: Of rank 1 or more.
    ids: The rows, integers `[num_ids]`.

  Returns:
    The rows, `[num_ids, ...]`.
  """
  return tf.gather(variable.read_value() if branching.is_reference(variable)
                   else variable, ids)
