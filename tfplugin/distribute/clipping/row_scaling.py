# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Multiplies some rows of a variable where they lie in memory.

  variable[positions[i]] *= scales[i]

A large variable is not copied: that would take new memory of its size, which
costs more than the arithmetic unless most rows are scaled. The factors are
spread over their rows in blocks that stay in the processor's cache. An update
of another worker between the measuring of the scales and the product is kept,
and scaled too.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfplugin.distribute import branching

tf1 = tf.compat.v1

_BLOCK_BYTES = 4 * 2**20


def scale_rows(variable: tf.Variable, positions: tf.Tensor,
               scales: tf.Tensor) -> tf.Tensor:
  """Scales rows; a row that is not among the positions is not touched.

  Args:
    variable: Of rank 1 or more; its dimension 0 counts the rows.
    positions: `[num_positions]`, integers without repeats.
    scales: `[num_positions, ...]`, of the variable's dtype; it broadcasts to
      the rows.

  Returns:
    A scalar that is there when the rows are scaled.

  Example:
    >>> v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = scale_rows(v, tf.constant([1]), tf.constant([[0.5]]))
    >>> v.numpy().tolist()
    [[1.0, 2.0], [1.5, 2.0]]
  """
  row_shape = variable.shape[1:].as_list()
  row_bytes = int(np.prod(row_shape)) * variable.dtype.size
  rows_per_block = max(1, _BLOCK_BYTES // max(1, row_bytes))

  def scale(ids, scales):
    factors = tf.broadcast_to(scales, tf.concat([tf.shape(ids), row_shape], 0))
    return _after(tf1.scatter_mul(variable, ids, factors))

  if (variable.shape[0] or np.inf) <= rows_per_block:
    # One block at most: the ops of a loop take longer to build than all else.
    with scale(positions, scales):
      return _share_reads(variable, tf.constant(0))
  number = tf.size(positions)

  def scale_block(begin):
    end = begin + rows_per_block
    with scale(positions[begin:end], scales[begin:end]):
      return [begin + rows_per_block]  # Not `end`, which waits for nothing.

  [done] = tf.while_loop(lambda begin: begin < number, scale_block,
                         [tf.constant(0)])
  return _share_reads(variable, done)


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
