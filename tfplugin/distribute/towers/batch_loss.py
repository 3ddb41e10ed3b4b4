# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The terms of a loss of a shard that are sums over rows.

The loss of the batch is the sum over shards, weighted by their rows. So a mean
stays as it is, and a sum over the rows of a shard is divided by its weight:

  sum{i} weight[i] * (mean[i] + sum[i] / weight[i])

A loss may have terms of both kinds: the ops that made it tell
(`loss_kinds.py`). Nothing else is asked, so that other losses of the same
graph, such as those of a metric, change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from tfplugin import _tf_internals
from tfplugin.distribute.towers import loss_kinds
from tfplugin.ops import weighted_sum

# A part of a loss, and its factor there.
_Term = tuple[tf.Tensor, Any]


def with_sums_times(factor: weighted_sum.Weight, loss: tf.Tensor,
                    terms: Sequence[_Term]) -> tf.Tensor:
  """Returns `loss` with `terms` of it, found by `sums`, multiplied.

  Args:
    factor: What they are multiplied by.
    loss: The loss.
    terms: Some of its terms.
  """
  if not terms:
    return loss
  with tf.name_scope('part_of_batch'):
    factor = tf.cast(factor, loss.dtype)
    if terms[0][0] is loss:
      return loss * factor
    total = tf.add_n([
        tf.reduce_sum(term) * tf.cast(coefficient, loss.dtype)
        for term, coefficient in terms])
    return tf.reduce_sum(loss) + (factor - 1) * total


def unnamed(loss: tf.Tensor) -> tf.Tensor:
  """Returns what `loss` is another name of.

  An identity with a name can be made one of something else; a name cannot.

  Args:
    loss: A loss of a tower.
  """
  while _tf_internals.names_tensor(loss.op):
    loss = loss.op.inputs[0]
  return loss


def show(losses: Sequence[tf.Tensor], total: tf.Tensor) -> None:
  """Lets the ops that read a tower's loss read the loss of the batch.

  A metric of the loss, or its summary, has one value per batch. The ops that
  the loss of the batch is made of are left alone.

  Args:
    losses: The loss of each tower.
    total: The loss of the batch, made from them.
  """
  pending, behind = [total.op], set()
  while pending:
    op = pending.pop()
    if op not in behind:
      behind.add(op)
      pending += [*(tensor.op for tensor in op.inputs), *op.control_inputs]
  if unnamed(losses[0]).op.name == 'loss':
    logging.warning(
        'The tensor `loss` of the model_fn is that of the first of %s towers; '
        'the loss of the batch is `%s`. Name it by `tf.identity(loss, '
        "name='loss')`, which is that of the batch.", len(losses), total.name)
  for loss in map(unnamed, losses):
    shown = None
    for op in set(loss.consumers()) - behind:
      shown = tf.cast(total, loss.dtype) if shown is None else shown
      for index, tensor in enumerate(op.inputs):
        if tensor is loss:
          _tf_internals.redirect_input(op, index, shown)


def sums(loss: tf.Tensor, kinds: loss_kinds.Kinds) -> list[_Term]:
  """Returns the terms of `loss` that are sums over rows, with their factors.

  Args:
    loss: A loss of a part of the batch.
    kinds: The kinds of the tensors of that part.

  Raises:
    ValueError: It is neither sum nor mean over the rows.
  """
  pending, terms = [(loss, 1.0)], []
  while pending:
    term, coefficient = pending.pop()
    kind = kinds.summed(term)
    if kind.is_sum:
      terms.append((term, coefficient))
    elif kind.is_mixed and parts_of(term, kinds):
      pending += [(part, coefficient * factor)
                  for part, factor in parts_of(term, kinds)]
    elif not kind.is_mean:
      raise _unknown(
          loss, f'made of `{term.name}` by {term.op.type}' +
          ', which mixes sums and means' * kind.is_mixed)
  return terms


def parts_of(term: tf.Tensor, kinds: loss_kinds.Kinds) -> list[_Term]:
  """Returns what `term` is the sum of, each with its factor; [] if unknown.

  Args:
    term: A loss, or a term of one.
    kinds: The kinds of the tensors of its part of the batch.
  """
  role = _tf_internals.role(term.op)
  operands = _tf_internals.operands(term)
  if role == 'add':
    signs = _tf_internals.signs(term.op)
    return list(zip(operands, signs))
  if role in ('pass', 'sum'):
    return [(operands[0], 1.0)]
  factors = [operand for operand in operands if kinds.of(operand).is_same]
  if role in ('multiply', 'divide') and factors and (
      factors[0].shape.rank == 0):
    number, = (part for part in operands if part is not factors[0])
    factor = factors[0] if role == 'multiply' else 1 / factors[0]
    return [(number, factor)]
  return []


def _unknown(loss: tf.Tensor, what: str) -> ValueError:
  return ValueError(
      'A loss in towers must be a sum or a mean over the rows of the batch. '
      f'Received: `{loss.name}`, {what}. Build it of these.')
