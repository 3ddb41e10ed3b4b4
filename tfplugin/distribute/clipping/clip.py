# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clipping of a variable, after a dense or a sparse gradient.

After a dense gradient all rows are clipped (`_clip_all`), after a sparse one
the rows that it touched (`_clip_rows`, with `ids`). The parts of a partitioned
variable are clipped together (`_clip_parts`).

The rule is `ops.norm_clipping`. A variable is measured first and written only
if a slice exceeds the bound, and usually only there. Every op is placed beside
the variable that it reads or writes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from collections.abc import Sequence
from typing import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute import per_graph
from tfplugin.ops import norm_clipping

tf1 = tf.compat.v1

_functions = per_graph.PerGraph()

# Rows are rewritten in blocks of at most this size.
_BLOCK_BYTES = 4 * 2**20

# The change of an update, for messages.
AUDITED = 'clips variables after their updates'


class ClipResult(NamedTuple):
  """The op that clips, and `int64` scalar counts.

  `operation` is done when the variable is clipped. `num_clipped` counts the
  slices that exceeded the bound, `num_slices` all slices that were measured.
  """

  operation: tf.Operation
  num_clipped: tf.Tensor
  num_slices: tf.Tensor


def clip(parts: Sequence[tf.Variable], axes: Sequence[int],
         max_norm: norm_clipping.Bound,
         ids: tf.Tensor | None = None) -> ClipResult:
  """Clips a variable, after the current control dependencies.

  `parts` is the variable alone, or the parts of a variable that is partitioned
  along one of `axes`. A slice over several parts is measured as a whole.
  `axes`, not negative, are the dimensions that one slice extends over.

  `ids` selects rows, as integers of shape `[num_ids]`; None means all rows. If
  a slice extends over the rows, all of them are clipped with any `ids`: if 0 is
  in `axes`, or for several parts. With `ids` the
  cost depends on their number, not on the variable's size. An id that occurs k
  times is measured k times, and each time the same value is written. The clip
  reads the row after the update, not the gradient.

  Example:
    >>> v = tf.Variable([[6.0, 8.0], [0.3, 0.4], [3.0, 4.0]])
    >>> _ = clip([v], [1], 2.0, ids=tf.constant([0, 1, 0]))
    >>> v.numpy().astype(float).round(3).tolist()
    [[1.2, 1.6], [0.3, 0.4], [3.0, 4.0]]
  """
  if tf.is_tensor(max_norm):
    with tf.control_dependencies([tf.compat.v1.debugging.assert_positive(
        max_norm, message='`max_norm` must be greater than 0.')]):
      max_norm = tf.identity(max_norm)
  fused = not _tf_internals.is_compiled()
  if len(parts) > 1:
    return _clip_parts(parts, norm_clipping.NormBound(axes, max_norm, fused))
  [variable] = parts
  varying = max_norm if tf.is_tensor(max_norm) else None
  fixed = None if tf.is_tensor(max_norm) else max_norm

  def clip_one(variable, ids, varying):
    bound = norm_clipping.NormBound(
        axes, fixed if varying is None else varying, fused)
    if ids is None:
      return _clip_all(variable, bound)
    return _clip_rows(variable, bound, ids)

  counts = call_by_shape(
      (tuple(axes), fixed), clip_one, variable,
      None if 0 in axes else ids, varying)
  return ClipResult(tf.group(*counts), *counts)


def touched_ids(gradients: Sequence[types.Gradient]) -> tf.Tensor | None:
  """Returns the row ids of sparse gradients; None if one of them is dense."""
  ids = [g.indices for g in gradients if isinstance(g, tf.IndexedSlices)]
  if not ids or len(ids) < len(gradients):
    return None
  return ids[0] if len(ids) == 1 else tf.concat(ids, 0)


def _clip_all(variable: tf.Variable,
              bound: norm_clipping.NormBound) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the counts, once the variable is clipped."""
  x = variable.read_value()
  norms = bound.norms(x)
  exceeds = bound.exceeds(norms, x.dtype)
  num_clipped = tf.math.count_nonzero(exceeds)

  def shrunk(x):
    return bound.shrink(x, bound.norms(x))

  # The written rows are read again. Holding the earlier value would make
  # TensorFlow copy the variable before it writes rows. Norms from before
  # another worker's clip would shrink its slices twice.
  def write():
    if not _writes_rows(variable, bound.axes):
      return _done(variable.assign(shrunk(variable.read_value())))
    return _done(rewrite_rows(
        variable, tf.where(_any_slice(exceeds))[:, 0], shrunk))

  with branching.updating([variable]):
    done = tf.cond(num_clipped > 0, write, lambda: tf.constant(True))
  return _after(done, num_clipped, norms)


def _writes_rows(variable: tf.Variable, axes: Sequence[int]) -> bool:
  """Returns whether single rows can be written in place."""
  return (variable.shape.rank > 0 and 0 not in axes and
          not _tf_internals.is_compiled())


def _clip_rows(variable: tf.Variable, bound: norm_clipping.NormBound,
               ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the counts, once the rows at `ids` are clipped."""
  # An accumulator, such as SyncReplicasOptimizer's, gives ids of unknown rank.
  ids = tf.reshape(ids, [-1])
  rows = branching.read_rows(variable, ids)
  norms = bound.norms(rows)
  exceeds = bound.exceeds(norms, rows.dtype)
  positions = tf.where(_any_slice(exceeds))[:, 0]
  clipped = bound.shrink(tf.gather(rows, positions),
                         tf.gather(norms, positions))
  done = _done(tf1.scatter_update(variable, tf.gather(ids, positions), clipped))
  return _after(done, tf.math.count_nonzero(exceeds), norms)


def _after(done: tf.Tensor, num_clipped: tf.Tensor,
           norms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the numbers of clipped and of all slices, after the clip."""
  with tf.control_dependencies(None if tf.executing_eagerly() else [done]):
    return tf.identity(num_clipped), tf.size(norms, out_type=tf.int64)


def _any_slice(exceeds: tf.Tensor) -> tf.Tensor:
  """Returns `[num_rows]`: whether any slice of the row is beyond the bound."""
  return tf.reduce_any(exceeds, axis=list(range(1, len(exceeds.shape))))


def _clip_parts(parts: Sequence[tf.Variable],
                bound: norm_clipping.NormBound) -> ClipResult:
  """Clips slices that extend over several variables."""
  values = [part.read_value() for part in parts]
  largest = norm_clipping.safe_divisor(tf.reduce_max(tf.stack(
      _beside(parts, bound.largest, values)), axis=0))
  unit_norms = tf.math.reduce_euclidean_norm(tf.stack(_beside(
      parts, lambda x: bound.unit_norms(x, largest), values)), axis=0)
  num_clipped = tf.math.count_nonzero(bound.exceeds_scaled(
      largest, unit_norms, parts[0].dtype.base_dtype))

  def write():
    return tf.stack([
        _done(part.assign(bound.rescale(x, largest, unit_norms)))
        for x, part in zip(values, parts)])

  with branching.updating(parts):
    done = tf.cond(num_clipped > 0, write,
                   lambda: tf.constant([True] * len(parts)))
  return ClipResult(tf.group(done), num_clipped,
                    tf.size(unit_norms, out_type=tf.int64))


def _beside(parts: Sequence[tf.Variable], fn, values: list) -> list[tf.Tensor]:
  """Returns `fn` of each value, computed beside the value's part."""
  results = []
  for part, value in zip(parts, values):
    with _tf_internals.colocate_with(part):
      results.append(fn(value))
  return results


def _done(assignment) -> tf.Tensor:
  """Returns True, a scalar that depends on `assignment` in a graph."""
  with _behind(assignment):
    return tf.constant(True)


def rewrite_rows(variable: tf.Variable, positions: tf.Tensor,
                 rewrite: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
  """Rewrites the rows at `positions` from their current values, and no others.

    variable[positions] = rewrite(variable[positions])

  The rows are written in blocks, so that no further memory of the variable's
  size is used. If all rows are rewritten, one assignment is faster. A row is
  written from a read just before the write. So two workers that clip it at the
  same time do not shrink it twice. Returns a scalar that depends on the
  writes.

  Example:
    >>> v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> _ = rewrite_rows(v, tf.constant([1]), lambda rows: rows / 2)
    >>> v.numpy().tolist()
    [[1.0, 2.0], [1.5, 2.0]]
  """
  # An unknown size counts as 1: the blocks have more bytes then.
  row_bytes = variable.dtype.size * math.prod(
      size or 1 for size in variable.shape[1:].as_list())
  rows_per_block = max(1, _BLOCK_BYTES // max(1, row_bytes))

  def rewritten(positions):
    return _behind(tf1.scatter_update(
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
    with _behind(variable.assign(rewrite(variable.read_value()))):
      return tf.constant(0)

  return tf.cond(number < tf.shape(variable)[0], rewrite_blocks, rewrite_all)


def _share_reads(variable: tf.Variable, after: tf.Tensor) -> tf.Tensor:
  """Returns `after`, once reads of all of `variable` make no copies any more.

  A resource variable whose rows are written is copied by each later read, which
  an update of the whole variable does not need.
  """
  if branching.is_reference(variable):
    return after
  with tf.control_dependencies([after]):
    operation = tf.raw_ops.DisableCopyOnRead(resource=variable.handle)
  with _behind(operation):
    return tf.identity(after)


def _behind(operation):
  """Returns control dependencies on `operation`; none in eager execution."""
  return tf.control_dependencies(
      [] if tf.executing_eagerly() else [getattr(operation, 'op', operation)])


def call_by_shape(key: Hashable, fn: Callable[..., tuple[tf.Tensor, ...]],
                  variable: tf.Variable, *inputs: tf.Tensor | None,
                  ) -> tuple[tf.Tensor, ...]:
  """Returns `fn(variable, *inputs)`, built once for all variables of a shape.

  A condition takes milliseconds to build. A graph has it once for each shape,
  and one call for each variable, which TensorFlow replaces by its ops. `fn` is
  the same function wherever `key` is equal. It uses no other tensors than its
  arguments and its results. Its writes happen before its results are there.
  Reference variables, eager execution, functions and XLA have the ops
  themselves.

  Example:
    >>> v = tf.Variable([1.0, 2.0])
    >>> float(call_by_shape('sum', lambda v: (tf.reduce_sum(v),), v)[0])
    3.0
  """
  with tf.init_scope():
    is_eager = tf.executing_eagerly()
  with _tf_internals.colocate_with(variable):
    if (is_eager or branching.is_reference(variable) or
        _tf_internals.is_compiled()):
      return fn(variable, *inputs)
    functions = _functions.for_current_graph(dict)
    if key not in functions:
      functions[key] = tf.function(fn, autograph=False)
    # TensorFlow builds a function again for other devices.
    with tf.device(None), _tf_internals.colocate_with(
        None, ignore_existing=True):
      concrete = functions[key].get_concrete_function(variable, *inputs)
    # Consumers wait for results, as the call counts as run before its ops have.
    return tuple(map(tf.identity, concrete(variable, *inputs)))
