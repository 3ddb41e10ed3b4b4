# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes of the global step that a model makes apart from its optimizers.

A canned estimator with two optimizers, or a program without `global_step` in
`minimize`, counts the step by an op of its own:

  with tf.control_dependencies([train_op]):
    global_step.assign_add(1)

A dropped step must not advance the step. So the op adds 0 there, or assigns the
step's own value.
"""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order

tf1 = tf.compat.v1

_ADDING = ('assign_add', 'assign_sub')


def only_where(accepted: tf.Tensor, step: tf.Variable,
               writes: Iterable[tf.Operation], caller: str) -> None:
  """Makes `writes` of `step` have no effect where `accepted` is false.

  A warning by `caller` names each write that cannot be changed: in a branch,
  before the decision, or by another op than an assignment.
  """
  before = graph_order.upstream([accepted.op])
  for op in writes:
    method = _tf_internals.method_of_write(op)
    if method in ('assign', *_ADDING) and op not in before and (
        _tf_internals.branch_of(op) == _tf_internals.branch_of(accepted.op)):
      _replace_value(op, accepted, step, method in _ADDING)
    else:
      tf1.logging.warning(
          '%s cannot keep %s (%s) from writing `%s` in a dropped step: the op '
          'is in a branch, or before the gradients. Pass `global_step` to '
          '`minimize` or `apply_gradients`, or write it after the update.',
          caller, op.name, op.type, step.name)


def _replace_value(op: tf.Operation, accepted: tf.Tensor, step: tf.Variable,
                   is_added: bool) -> None:
  """Makes an assignment write no change where `accepted` is false."""
  value = op.inputs[1]
  with tf.control_dependencies(None), _tf_internals.colocate_with(step):
    with tf.control_dependencies([accepted, *op.control_inputs]):
      unchanged = tf.zeros_like(value) if is_added else step.read_value()
    _tf_internals.redirect_input(
        op, 1, tf.where(accepted, value, unchanged))
