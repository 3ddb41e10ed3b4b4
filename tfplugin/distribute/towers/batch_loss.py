# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The loss of a tower as a part of the loss of the batch.

The loss of the batch is the sum over towers, weighted by their rows. So a mean
stays as it is, and a sum over the rows of a tower is divided by its weight:

  sum{i} weight[i] * (mean[i] + sum[i] / weight[i])

A loss may have terms of both kinds: the ops that made it tell
(`loss_kinds.py`). Nothing else is asked, so that other losses of the same
graph, such as those of a metric, change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf
from absl import logging

from tfplugin import _tf_internals
from tfplugin.distribute.towers import loss_kinds
from tfplugin.distribute.towers import part_kinds
from tfplugin.ops import weighted_sum

_REMEDY = (
    'Pass `loss_reduction=tf.compat.v1.losses.Reduction.MEAN` to average it '
    'over the towers, weighted by their rows, or SUM to add it up, or build it '
    'of sums and means over the rows.')

# A part of a loss, and its factor there.
_Term = tuple[tf.Tensor, Any]


class BatchLoss:
  """Finds the part that the losses of one tower are of those of the batch."""

  def __init__(self, kinds: part_kinds.PartKinds, weight: weighted_sum.Weight):
    """Prepares one tower.

    Args:
      kinds: The kinds of its tensors.
      weight: Its share of the rows.
    """
    self._kinds = kinds
    self._factor = _inverse(weight)
    self._found = {}

  def part(self, loss: tf.Tensor, gradient: Optional[tf.Tensor] = None,
           ) -> tf.Tensor:
    """Returns the tower's part, whose weighted sum is the loss of the batch.

    Args:
      loss: A loss of the tower; of other than a scalar it is the sum.
      gradient: That of another loss with respect to this one; None: ones.

    Raises:
      ValueError: It is neither sum nor mean over the rows.
    """
    if loss.ref() not in self._found:
      kinds = self._kinds.now(loss.graph)
      self._check_gradient(kinds, loss, gradient)
      self._found[loss.ref()] = with_sums_times(
          self._factor, loss, sums(loss, kinds))
    return self._found[loss.ref()]

  def factor(self, loss: tf.Tensor) -> Optional[weighted_sum.Weight]:
    """Returns what `part` multiplies `loss` by; None is 1.

    Args:
      loss: A loss of the tower.

    Raises:
      ValueError: It is neither sum nor mean over the rows, or a sum of both.
    """
    terms = sums(loss, self._kinds.now(loss.graph))
    if not terms:
      return None
    if terms[0][0] is not loss:
      raise _unknown(loss, 'a sum of terms of which some are sums over rows, '
                     'differentiated by a `tf.GradientTape`')
    return self._factor

  def _check_gradient(self, kinds: loss_kinds.Kinds, loss: tf.Tensor,
                      gradient: Optional[tf.Tensor]) -> None:
    if tf.is_tensor(gradient) and not kinds.of(gradient).is_same:
      raise _unknown(loss, 'differentiated with `grad_ys` made of the rows')


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


def show_in_summaries(ops_by_tower: Sequence[Sequence[tf.Operation]],
                      reduce: Callable[[Sequence[tf.Tensor]], Any]) -> None:
  """Lets scalar summaries of the first tower show the number of the batch.

  One that is neither a sum nor a mean over the rows is left as it is, with a
  warning.

  Args:
    ops_by_tower: For each tower the ops that were built in it.
    reduce: Returns the number of the batch for those of the towers; it raises a
      ValueError, or returns None, if it cannot be known.
  """
  summaries = [[op for op in ops
                if _tf_internals.summarized_value(op) is not None and
                not _tf_internals.is_in_branch_or_loop(op)]
               for ops in ops_by_tower]
  left = []
  for group in zip(*summaries):
    values = [_tf_internals.summarized_value(op) for op in group]
    try:
      reduced = reduce(values)
    except ValueError:
      left.append(group[0].name)
    else:
      if reduced is not None:
        _tf_internals.redirect_input(group[0], 1, reduced)
  if left:
    logging.warning(
        'Summaries that are neither a sum nor a mean over the rows of a batch '
        'show the number of the first of %s towers: %s.', len(summaries),
        ', '.join(left))


def _inverse(weight: weighted_sum.Weight) -> weighted_sum.Weight:
  if isinstance(weight, float):
    return 1.0 / weight if weight else 0.0
  return tf.math.divide_no_nan(tf.ones_like(weight), weight)


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
      f'Received: `{loss.name}`, {what}. {_REMEDY}')
