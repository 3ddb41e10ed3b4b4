# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The only place where tfplugin uses names that TensorFlow keeps private.

Each function says what it reaches and why no public API serves.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

tf1 = tf.compat.v1


def create_optimizer_state(optimizer: tf1.train.Optimizer,
                           var_list: Sequence[tf.Variable]) -> None:
  """Creates every slot and non-slot variable `optimizer` keeps for `var_list`.

  The public API creates them inside `apply_gradients` only. Inside a `tf.cond`
  that is too late: the variables would be named after the branch.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    var_list: The variables that it is going to update.
  """
  with tf.init_scope():
    optimizer._create_slots(var_list)


def learning_rate_of(optimizer: tf1.train.Optimizer):
  """Returns what `optimizer` was given as learning rate, or None.

  No v1 optimizer has a public attribute for it: Adam and AdamW keep it in
  `_lr`, the others in `_learning_rate`.

  Args:
    optimizer: A v1 optimizer, not a wrapper.

  Returns:
    A number, a tensor or the value of the callable that was passed; None where
    the optimizer keeps no learning rate under either name.
  """
  for attribute in ('_lr', '_learning_rate'):
    rate = getattr(optimizer, attribute, None)
    if rate is not None:
      return rate() if callable(rate) else rate
  return None
