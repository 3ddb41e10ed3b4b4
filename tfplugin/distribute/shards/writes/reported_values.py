# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers that the first shard reports: summaries and named tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import batch_values

tf1 = tf.compat.v1


def show_batch_values(run: shard_run.ShardRun, group: Sequence[int],
                      loss: Any) -> None:
  """Replaces numbers that the first shard reports by numbers of all rows.

  The shards of `run` have been built. `group` has the shards that reduce
  together with the first one. The `loss` of the first shard is not changed.
  """
  left, own = [], run.values[0]
  gather = batch_values.rows_of(run.record, run.batch, group)
  for op in run.record.built_in(0):
    value = _tf_internals.reported_value(op)
    if value is None:
      if _tf_internals.is_summary(op) and own.is_of_rows(list(op.inputs)):
        left.append(op.name)
      continue
    if op.outputs[0] is loss or not own.is_of_rows(value):
      continue
    if run.gradients.made(value) or _tf_internals.is_in_branch_or_loop(op):
      left.append(op.name)
      continue
    try:
      _tf_internals.redirect_input(
          op, list(op.inputs).index(value),
          own.of_all(value, gather))
    except batch_values.UnknownValueError:
      left.append(op.name)
  if left:
    tf1.logging.warning(
        'Summaries and named tensors that are not computed for the rows of '
        'all shards show the first of %s: %s.', len(run.batch), ', '.join(left))


def show_loss(losses: Sequence[tf.Tensor], total: tf.Tensor) -> None:
  """Makes the ops that read a shard's loss read the loss of the batch.

  A metric of the loss, or its summary, then has one value per batch. `total` is
  made from `losses`; the ops on the way to it are left alone.
  """
  behind = graph_order.upstream([total.op])
  if losses[0].op.name == 'loss' and not _tf_internals.names_tensor(
      losses[0].op):
    tf1.logging.warning(
        'The tensor `loss` of the model_fn is the loss of the first of %s '
        'shards; the loss of the batch is `%s`. Name the loss by '
        "`tf.identity(loss, name='loss')`, which becomes the loss of the "
        'batch.', len(losses), total.name)
  losses = [unnamed(loss) for loss in losses if isinstance(loss, tf.Tensor)]
  for loss in losses:
    readers = set(loss.consumers()) - behind
    if readers:
      _tf_internals.redirect(readers, loss, tf.cast(total, loss.dtype))


def unnamed(loss: tf.Tensor) -> tf.Tensor:
  """Returns the tensor behind identity ops that only name a loss.

  An identity with a name can be redirected to another tensor; a name cannot.
  """
  while isinstance(loss, tf.Tensor) and _tf_internals.names_tensor(loss.op):
    loss = loss.op.inputs[0]
  return loss
