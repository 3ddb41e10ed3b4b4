# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""In-place rewriting of some rows of a variable from their current values.

  variable[positions] = rewrite(variable[positions])

The rows are written in blocks, so that no further memory of the variable's size
is used. If all rows are rewritten, one assignment is faster and is used
instead. A row is written from a read just before the write, not from an earlier
measurement. If two workers clip a row at the same time, it is not shrunk twice.
"""

from __future__ import annotations

from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin.distribute import branching

tf1 = tf.compat.v1

_BLOCK_BYTES = 4 * 2**20


def rewrite_rows(variable: tf.Variable, positions: tf.Tensor,
                 rewrite: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
  """Rewrites the rows at `positions`, and no others.

  `variable` has rank 1 or more. `positions` are integers without repeats,
  `[num_positions]`. `rewrite` takes rows `[num_rows, ...]`, and returns as
  many. Returns a scalar that depends on the writes.

  Example:
    >>> v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = rewrite_rows(v, tf.constant([1]), lambda rows: rows / 2)
    >>> v.numpy().tolist()
    [[1.0, 2.0], [1.5, 2.0]]
  """
  row_shape = variable.shape[1:].as_list()
  row_bytes = int(np.prod(row_shape)) * variable.dtype.size
  rows_per_block = max(1, _BLOCK_BYTES // max(1, row_bytes))

  def rewritten(positions):
    return _after(tf1.scatter_update(
        variable, positions, rewrite(branching.read_rows(variable, positions))))

  if (variable.shape[0] or np.inf) <= rows_per_block:
    # One block at most: a loop would take longer to build than all other ops.
    with rewritten(positions):
      return _share_reads(variable, tf.constant(0))
  number = tf.size(positions)

  def rewrite_block(begin):
    with rewritten(positions[begin:begin + rows_per_block]):
      return [begin + rows_per_block]

  def rewrite_blocks():
    [done] = tf.while_loop(lambda begin: begin < number, rewrite_block,
                           [tf.constant(0)])
    return _share_reads(variable, done)

  def rewrite_all():
    with _after(variable.assign(rewrite(variable.read_value()))):
      return tf.constant(0)

  return tf.cond(number < tf.shape(variable)[0], rewrite_blocks, rewrite_all)


def _share_reads(variable: tf.Variable, after: tf.Tensor) -> tf.Tensor:
  """Returns `after`, once reads of all of `variable` make no copies any more.

  A resource variable whose rows are written is copied by each later read. An
  update of the whole variable needs no such copies: its buffer is not shared,
  or it makes a new one. Reference variables do not need this.
  """
  if branching.is_reference(variable):
    return after
  with tf.control_dependencies([after]):
    operation = tf.raw_ops.DisableCopyOnRead(resource=variable.handle)
  with _after(operation):
    return tf.identity(after)


def _after(operation):
  """Returns control dependencies on `operation`; none in eager execution."""
  return tf.control_dependencies(
      [] if tf.executing_eagerly() else [getattr(operation, 'op', operation)])
