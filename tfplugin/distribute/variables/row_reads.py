# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads of rows of a variable."""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import branching


def gather(variable: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
  """Returns the current rows of a variable, after the control dependencies.

  `tf.gather` of a reference variable reads the same tensor as the model. With a
  `caching_device` on the worker, that is a copy from before an update of the
  same step. `variable` has rank 1 or more, `ids` are integers `[num_ids]`, and
  the rows are `[num_ids, ...]`.
  """
  return tf.gather(variable.read_value() if branching.is_reference(variable)
                   else variable, ids)
