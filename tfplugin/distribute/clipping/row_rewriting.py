# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes some rows of a variable anew, from what they are.

  variable[positions] = rewrite(variable[positions])

The rows come in blocks, so that no new memory of the variable's size is taken,
unless all of them are rewritten: one assignment then takes less time. A row is
written from what was read just before, not from what was measured earlier: of
two workers that clip it at the same time, neither shrinks what the other has.
"""

from __future__ import annotations

from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin.distribute import branching
from tfplugin.distribute.variables import row_reads

tf1 = tf.compat.v1

_BLOCK_BYTES = 4 * 2**20


def rewrite_rows(variable: tf.Variable, positions: tf.Tensor,
                 rewrite: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
  """Rewrites rows; a row that is not among the positions is not touched.

  Args:
    variable: Of rank 1 or more; its dimension 0 counts the rows.
    positions: `[num_positions]`, integers without repeats.
    rewrite: Takes rows `[num_rows, ...]`, and returns as many.

  Returns:
    A scalar that is there when the rows are written.

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
        variable, positions, rewrite(row_reads.gather(variable, positions))))

  if (variable.shape[0] or np.inf) <= rows_per_block:
    # One block at most: the ops of a loop take longer to build than all else.
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
  """Returns `after` once reading all of `variable` makes no copy any more.

  A resource variable whose rows are written is copied by each read from then
  on. An update of the whole variable works on it alone, or makes it so.

  Args:
    variable: Resource variables need this; others are left alone.
    after: The tensor to wait for.
  """
  if branching.is_reference(variable):
    return after
  with tf.control_dependencies([after]):
    operation = tf.raw_ops.DisableCopyOnRead(resource=variable.handle)
  with _after(operation):
    return tf.identity(after)


def _after(operation):
  """Control dependencies on `operation`; in eager execution it has run."""
  return tf.control_dependencies(
      [] if tf.executing_eagerly() else [getattr(operation, 'op', operation)])
