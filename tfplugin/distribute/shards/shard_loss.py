# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loss of a shard as a part of the total loss: divided, or a sum.

With MEAN a v1 optimizer of a shard minimises its loss, divided by the number of
shards. A loss that was built with `Reduction.SUM` is a sum over the batch. It
is not divided, and neither is it as a term of another loss:

  loss = sum + mean  ->  sum + mean / shards

TensorFlow checks only the last loss that was built, which may be a metric's.
Here the ops that made the loss are inspected. In eager execution the last loss
decides.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.variables import same_values
from tfplugin.ops import shard_reduction

tf1 = tf.compat.v1

# Reductions of `tf.compat.v1.losses`, and of `tf.keras.losses`. A mean of Keras
# 3 or `tf.nn` is divided already, so it is summed like a sum.
_DIVIDED = (_tf_internals.MEAN_OF_REPLICAS, _tf_internals.AVERAGE_OF_REPLICAS)
_SUMS = (shard_reduction.SUM, 'sum', *_DIVIDED)
_NOT_REDUCED = (None, tf1.losses.Reduction.NONE)
# Attribute of a loss that an optimizer minimises; see `is_part`.
_PART = 'tfplugin_part'
_local = threading.local()


class ScalesLoss:
  """Mixin of strategies whose numbers of shards divide a loss.

  `reduced_together` is the number of shards whose mean is minimised. Keras 3
  and `tf.nn` divide a mean loss by `divided_by_keras`. There are `num_shards`,
  in a shard, too.
  """

  # Otherwise weights of the shards divide it.
  divides_loss = True
  # Prevents a second division by TensorFlow.
  _scale_loss_for_estimator = property(lambda self: False, lambda self, _: None)

  @property
  def sums_losses(self) -> bool:
    """True if the total is the sum of the losses of a group, not their mean."""
    return self.divides_loss and self.reduced_together < (
        shard_reduction.group_size(self.group_assignment, self.num_shards))

  def part_of_loss(self, loss: tf.Tensor) -> tf.Tensor:
    """Returns this shard's contribution to the total loss.

    Raises ValueError if the loss is computed from a `Reduction.SUM` loss in
    another way than as a sum of terms. Raises ValueError, too, if Keras 3
    divided it by another number than `reduced_together`, or `tf.nn` by another
    one than the shards of a group.
    """
    if not self.divides_loss:
      return with_whole_sums(loss, self.num_shards)
    number = self.divided_by_keras
    if number != self.reduced_together:
      is_group = number == shard_reduction.group_size(
          self.group_assignment, self.num_shards)
      _check_not_divided(loss, number, _DIVIDED[:1] if is_group else _DIVIDED)
    return divided(loss, self.reduced_together)


def scaled(scale_loss: Callable[[tf.Tensor], tf.Tensor],
           loss: tf.Tensor) -> tf.Tensor:
  """Returns the loss that a v1 optimizer minimises: in a shard, its part.

  Outside of shards TensorFlow's `scale_loss` decides.
  """
  strategy = tf.distribute.get_strategy()
  if not isinstance(strategy, ScalesLoss) or (
      tf.distribute.in_cross_replica_context()):
    return scale_loss(loss)
  is_scaled, part = (
      getattr(_local, 'as_they_are', False), strategy.part_of_loss(loss))
  part = loss if is_scaled else part
  if tf.is_symbolic_tensor(part):
    setattr(part, _PART, is_scaled or strategy.divides_loss)
  return part


def is_part(loss: tf.Tensor) -> bool | None:
  """Returns whether `loss` is a part of the sum over shards, not of the mean.

  None: some of its terms are sums, and others are means.
  """
  if hasattr(loss, _PART):
    return getattr(loss, _PART)
  if tf.distribute.get_strategy().sums_losses:
    return True
  return _has_sums(loss) and (_is_only_sums(loss) or None)


@contextlib.contextmanager
def losses_as_they_are() -> Iterator[None]:
  """Makes v1 optimizers of shards minimise losses unscaled."""
  outer = getattr(_local, 'as_they_are', False)
  _local.as_they_are = True
  try:
    yield
  finally:
    _local.as_they_are = outer


def _check_not_divided(loss: tf.Tensor, number: int,
                       reductions: Sequence[str]) -> None:
  """Raises ValueError if `loss` contains one of `reductions`."""
  pending, seen = [loss], set()
  while pending:
    last = pending.pop()
    reduction = _tf_internals.reduction_of(last) if tf.is_symbolic_tensor(
        last) else _tf_internals.last_reduction()
    if reduction in reductions:
      raise ValueError(
          'A mean loss of Keras 3 or `tf.nn` must not be used in shards with '
          '`reduction=SUM` or several groups: it is divided by the number of '
          f'all replicas. Received: {last!r}, divided by {number}. Use '
          '`tf.compat.v1.losses`, or `reduction=\'sum\'` and a division of '
          'your own.')
    if tf.is_symbolic_tensor(last) and last.ref() not in seen:
      seen.add(last.ref())
      pending += last.op.inputs


def divided(loss: tf.Tensor, num_shards: int) -> tf.Tensor:
  """Returns `loss` divided by `num_shards`, except for terms that are sums.

  Raises ValueError if it is computed from a `Reduction.SUM` loss in another way
  than as a sum of terms.
  """
  if num_shards == 1:
    return loss
  if not tf.is_symbolic_tensor(loss):
    is_sum = _tf_internals.last_reduction() in _SUMS
    return loss if is_sum else loss * (1.0 / num_shards)
  terms = _sums(loss)
  if terms and terms[0][0] is loss:
    return loss
  return _with_sums_times(
      num_shards, loss, terms) * (1.0 / num_shards)


def with_whole_sums(loss: tf.Tensor, num_shards: int) -> tf.Tensor:
  """Returns the loss scaled so that its mean over shards is the total.

  `loss` is a tensor of a graph. The result is `divided` times `num_shards`,
  with the same errors.
  """
  return _with_sums_times(num_shards, loss, _sums(loss))


def _sums(loss: tf.Tensor) -> list:
  """Returns the terms of `loss` that are losses built as sums, and factors."""
  pending, terms = [(loss, 1.0)], []
  while pending:
    term, coefficient = pending.pop()
    if not _has_sums(term):
      continue
    if _is_sum(term):
      terms.append((term, coefficient))
      continue
    parts = _tf_internals.addends(term) or _multiples(term)
    if not parts:
      raise ValueError(
          'A loss of shards that is made from a loss with `Reduction.SUM` must '
          'be a sum of losses, each times a constant. Received: '
          f'`{loss.name}`, made of `{term.name}` by {term.op.type}. Use '
          '`tfplugin.replicate_model_fn`, which computes it for all rows; or '
          'build it of losses with another reduction, and each shard computes '
          'it for its own rows.')
    pending += [(part, coefficient * factor) for part, factor in parts]
  return terms


def _with_sums_times(factor: float, loss: tf.Tensor, terms: list) -> tf.Tensor:
  """Returns `loss` with its `terms`, found by `_sums`, multiplied."""
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


def _has_sums(loss: tf.Tensor) -> bool:
  return any(_tf_internals.reduction_of(t) in _SUMS for t in _behind(loss))


def _is_sum(term: tf.Tensor) -> bool:
  """Returns whether `term` is a loss built as a sum, or a choice of these."""
  term = _tf_internals.outside_of_functions(term)
  chosen = _tf_internals.alternatives(term)
  return _tf_internals.reduction_of(term) in _SUMS or bool(chosen) and all(
      map(_is_only_sums, chosen))


def _is_only_sums(term: tf.Tensor) -> bool:
  if _is_sum(term):
    return True
  parts = _tf_internals.addends(term) or _multiples(term)
  return bool(parts) and all(_is_only_sums(part) for part, _ in parts)


def _multiples(term: tf.Tensor) -> list:
  """Returns the factor of a multiple, with the tensor that it multiplies."""
  found = _tf_internals.factors(term)
  if found is None:
    return []
  number, by, divides = found
  if not _is_constant(by) and not divides:
    number, by = by, number
  if by.shape.rank != 0 or not _is_constant(by):
    return []
  _warn_of_rows(term, by, divides)
  return [(number, 1 / by if divides else by)]


def _warn_of_rows(term: tf.Tensor, by: tf.Tensor, divides: bool) -> None:
  """Warns of a sum that is divided by a number of rows, or a multiple."""
  run, number = shard_run.current(), tf.get_static_value(by)
  if not (run and number) or tf.distribute.get_replica_context().tfplugin_shard:
    return
  rows = run.values[0].num_rows or math.inf
  count = float(number if divides else 1 / number)
  times = round(count / rows)  # Every number is a multiple of one row.
  if (times >= 1 if rows > 1 else times == 1 and divides) and math.isclose(
      count, rows * times, rel_tol=1e-6):
    tf1.logging.warning(
        '`%s` divides a loss with `Reduction.SUM` by %g, and a shard has %d '
        'row%s. The sum is over the rows of all shards. If the number counts '
        'rows, use `Reduction.SUM_OVER_BATCH_SIZE`, or the sum over the batch '
        'becomes as many times too large as there are shards.',
        term.name, count, rows, 's' * (rows > 1))


def _is_constant(tensor: tf.Tensor) -> bool:
  """Returns whether `tensor` depends on no loss and no rows."""
  return all(
      _tf_internals.reduction_of(last) in _NOT_REDUCED and not (
          _tf_internals.is_size(last.op) or (
              last.dtype != tf.resource and
              _tf_internals.gives_rows(last.op))) for last in _behind(tensor))


def _behind(tensor: tf.Tensor) -> Iterator[tf.Tensor]:
  """Yields the tensors that `tensor` is made from, down to reduced losses."""
  pending, seen = [tensor], set()
  while pending:
    last = _tf_internals.outside_of_functions(pending.pop())
    if not tf.is_symbolic_tensor(last) or last.ref() in seen or (
        same_values.is_declared(last)):
      continue
    seen.add(last.ref())
    yield last
    if _tf_internals.reduction_of(last) in _NOT_REDUCED:
      pending += last.op.inputs
      pending += [output for inner in _tf_internals.ops_of_bodies(last.op)
                  for output in inner.outputs]
