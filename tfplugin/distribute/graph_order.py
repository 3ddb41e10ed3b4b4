# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What in a graph is computed before what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals


def operations_of(values: Iterable[Any]) -> list[tf.Operation]:
  """Returns the operations among `values`, and those that make its tensors.

  Args:
    values: Anything that a function returned which built a graph.
  """
  return [value if isinstance(value, tf.Operation) else value.op
          for value in values
          if isinstance(value, tf.Operation) or tf.is_tensor(value)]


def sources(operation: tf.Operation) -> list[tf.Operation]:
  """Returns the operations that `operation` itself waits for.

  Args:
    operation: An operation of a graph.
  """
  return [*(tensor.op for tensor in operation.inputs),
          *operation.control_inputs]


def upstream(operations: Iterable[tf.Operation]) -> set[tf.Operation]:
  """Returns `operations` and all that runs before them, of their own graph.

  Args:
    operations: Operations of one graph.

  Example:
    >>> with tf.Graph().as_default():
    ...   a = tf.constant(1.0, name='a')
    ...   b = tf.negative(a, name='b')
    ...   _ = tf.abs(b)
    ...   sorted(op.name for op in upstream([b.op]))
    ['a', 'b']
  """
  found = set(operations)
  pending = list(found)
  while pending:
    for source in sources(pending.pop()):
      if source not in found:
        found.add(source)
        pending.append(source)
  return found


def updates(operations: Iterable[tf.Operation],
            *variables: tf.Variable) -> bool:
  """Whether one of `variables` is written when `operations` are run.

  Args:
    operations: Operations of the current graph.
    *variables: Any variables.
  """
  writes = [write for variable in variables
            for write in _tf_internals.writes_of(
                variable, tf.compat.v1.get_default_graph())
            if write.op is not variable.initializer]
  before = upstream(operations) if writes else set()
  return any(write.root in before for write in writes)
