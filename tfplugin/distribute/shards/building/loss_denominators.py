# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One denominator for the mean losses of all shards: the count of the batch.

The reductions of `tf.compat.v1.losses` divide a sum by a count: of non-zero
weights, of elements, or by a sum of weights. In a shard it is the shard's count
n[i], and a mean of such means is not the mean of the batch. With

  n[i]  ->  weight[i] * sum{j} n[j]

in the place of n[i], the weighted sum over shards has the value and the
gradients of the batch. Other terms of the loss make no difference:

  sum{i} weight[i] * S[i] / (weight[i] * sum{j} n[j])  =  S / n

In a branch, a loop or a function no shard knows the count of another one. If
n[i] is the number of elements, it needs none: the weights of shards are their
shares of the rows. If n[i] depends on weights of the loss, the loss is refused
there.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.ops import batch_parts


def share_denominators(ops_by_shard: Sequence[Sequence[tf.Operation]],
                       weights: Sequence[batch_parts.Weight]) -> None:
  """Makes the mean losses of all shards divide by the common count.

  They were built inside `counts_marked`. `weights` are the factors of the
  shards' losses. A RuntimeError is raised if shards have different numbers of
  such losses. It is also raised for a weighted one in a branch, a loop or a
  function.
  """
  counts_by_shard = [_counts(ops) for ops in ops_by_shard]
  sizes = [len(counts) for counts in counts_by_shard]
  if len(set(sizes)) > 1:
    raise RuntimeError(
        'Shards must compute the same losses. Received: a model_fn with '
        f'{sizes} mean losses in shards 0 to {len(sizes) - 1}. Add the same '
        'losses whatever the shard.')
  for counts in zip(*counts_by_shard):
    _share_one(counts, weights)


def _counts(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
  """Returns the counts of the mean losses among `ops`, in order."""
  found = []
  for op in ops:
    for inner in _tf_internals.ops_of_bodies(op):
      _check_size(inner)
    if _tf_internals.is_in_branch_or_loop(op):
      _check_size(op)
      continue
    if _tf_internals.is_count_of_mean(op):
      found.append(op)
  return found


def _check_size(op: tf.Operation) -> None:
  """Raises if `op` is the count of a mean loss, and depends on weights."""
  if not _tf_internals.is_count_of_mean(op):
    return
  for source in graph_order.upstream(
      [op], of_values=True, stop=_tf_internals.is_size):
    if not (source.inputs or _tf_internals.is_size(source)) and (
        _tf_internals.may_vary(source)):
      raise RuntimeError(
          'A mean loss with weights must be outside of `tf.cond`, '
          '`tf.while_loop` and `tf.function` in a model_fn that is built in '
          f'several shards. Received: {op.name} inside one of these. Compute '
          'the loss in every step, and let branches choose the values that it '
          'is given.')


def _share_one(counts: Sequence[tf.Operation],
               weights: Sequence[batch_parts.Weight]) -> None:
  with tf.control_dependencies(None):
    total = tf.add_n([count.inputs[0] for count in counts])
    for count, weight in zip(counts, weights):
      _tf_internals.redirect_input(
          count, 0, total * tf.cast(weight, total.dtype))
