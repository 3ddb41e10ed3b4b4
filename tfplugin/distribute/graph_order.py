# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Order of the operations of a graph."""

from __future__ import annotations

from collections.abc import Container
from collections.abc import Iterable
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals


def operations_of(values: Iterable[Any]) -> list[tf.Operation]:
  """Returns the operations among `values`, and the producers of its tensors.

  `values` may be anything that a function that built a graph returned.
  """
  return [value if isinstance(value, tf.Operation) else value.op
          for value in values
          if isinstance(value, tf.Operation) or tf.is_tensor(value)]


def sources(operation: tf.Operation) -> list[tf.Operation]:
  """Returns the operations that `operation` directly waits for."""
  return [*(tensor.op for tensor in operation.inputs),
          *operation.control_inputs]


def upstream(values: Iterable[Any], of_values: bool = False,
             stop: Callable[[tf.Operation], bool] = lambda operation: False,
             known: Container[tf.Operation] = (),
             ) -> set[tf.Operation]:
  """Returns the operations of `values`, and all that run before them.

  With `of_values` only those whose results the others use. An operation that
  `stop` accepts is included, and the search does not go behind it. It goes
  neither to `known` operations nor behind them, nor into another graph.

  Example:
    >>> with tf.Graph().as_default():
    ...   a = tf.constant(1.0, name='a')
    ...   b = tf.negative(a, name='b')
    ...   _ = tf.abs(b)
    ...   sorted(op.name for op in upstream([b]))
    ['a', 'b']
  """
  found = {operation for operation in operations_of(values)
           if operation not in known}
  pending = list(found)
  while pending:
    operation = pending.pop()
    if stop(operation):
      continue
    for source in ([tensor.op for tensor in operation.inputs] if of_values
                   else sources(operation)):
      if source not in found and source not in known:
        found.add(source)
        pending.append(source)
  return found


def updates(operations: Iterable[tf.Operation],
            *variables: tf.Variable) -> bool:
  """Returns whether running `operations` writes one of `variables`.

  The operations are of the current graph. Initializers do not count.
  """
  writes = [write for variable in variables
            for write in _tf_internals.writes_of(
                variable, tf.compat.v1.get_default_graph())
            if write.op is not variable.initializer]
  before = upstream(operations) if writes else set()
  return any(write.root in before for write in writes)
