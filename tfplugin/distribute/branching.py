# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A condition whose branches may update reference variables.

Control flow v2 hands a branch the value of a reference variable, and an update
refuses a value. Control flow v1 hands it the variable. Both can be used in one
graph: v1 is taken where a variable needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

import tensorflow as tf

tf1 = tf.compat.v1


def cond(should: tf.Tensor, true_fn: Callable[[], tf.Tensor],
         false_fn: Callable[[], tf.Tensor],
         updated: Iterable[tf.Variable]) -> tf.Tensor:
  """Returns `true_fn()` where `should` is true, else `false_fn()`.

  Args:
    should: A bool scalar.
    true_fn: Makes the ops of one branch; returns a tensor.
    false_fn: Makes the ops of the other branch.
    updated: The variables that a branch updates: resource or reference
      variables, also of a strategy.
  """
  if not (tf1.control_flow_v2_enabled() and any(map(is_reference, updated))):
    return tf.cond(should, true_fn, false_fn)
  tf1.disable_control_flow_v2()
  try:
    return tf.cond(should, true_fn, false_fn)
  finally:
    tf1.enable_control_flow_v2()


def is_reference(variable: tf.Variable) -> bool:
  """Whether `variable` is a reference variable, `use_resource=False`.

  Args:
    variable: Any variable.
  """
  return variable.dtype != variable.dtype.base_dtype
