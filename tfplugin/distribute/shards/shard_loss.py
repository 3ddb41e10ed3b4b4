# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The loss of a shard as a part of that of all shards: divided, or a sum.

With MEAN a v1 optimizer of a shard minimises its loss, divided by the number of
shards. A loss that was built with `Reduction.SUM` is a sum over the batch; it
is not divided, and neither is it as a term of another loss:

  loss = sum + mean  ->  sum + mean / shards

TensorFlow goes by the last loss that was built, for a metric, say. Here the ops
tell that made the loss. In eager execution there are none, and it is the last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import shard_reduction
from tfplugin.distribute.towers import batch_loss
from tfplugin.distribute.towers import loss_kinds
from tfplugin.distribute.towers import part_kinds
from tfplugin.distribute.variables import same_values

tf1 = tf.compat.v1

# Of `tf.compat.v1.losses`, and of `tf.keras.losses`. A mean of Keras 3 has been
# divided already: it is added up as a sum is.
_SUMS = (shard_reduction.SUM, 'sum', _tf_internals.MEAN_OF_REPLICAS)
_NOT_REDUCED = (None, tf1.losses.Reduction.NONE)


class ScalesLoss:
  """Goes in front of a strategy's class that knows its `reduced_together`.

  `reduced_together` is the number of shards whose mean is minimised.
  """

  @property
  def _scale_loss_for_estimator(self) -> bool:
    # TensorFlow is not to divide as well.
    return False

  @_scale_loss_for_estimator.setter
  def _scale_loss_for_estimator(self, value: bool) -> None:
    del value

  @property
  def divided_by_keras(self) -> int:
    """The number that Keras 3 divides a mean loss by."""
    return self.num_replicas_in_sync

  def scaling_losses(self) -> contextlib.AbstractContextManager:
    """Lets v1 optimizers in its replicas minimise their `part_of_loss`."""
    return minimising(self, self.part_of_loss)

  def part_of_loss(self, loss: tf.Tensor) -> tf.Tensor:
    """Returns the part of the loss of all shards that that of one is.

    Args:
      loss: The loss of a shard.

    Raises:
      ValueError: It was made from a loss built with `Reduction.SUM`, and is
        none itself; or by Keras 3, which divides by another number.
    """
    if self.divided_by_keras != self.reduced_together:
      _check_not_divided(loss, self.divided_by_keras)
    return divided(loss, self.reduced_together)


@contextlib.contextmanager
def minimising(strategy: tf.distribute.Strategy,
               scale: Callable[[tf.Tensor], tf.Tensor]) -> Iterator[None]:
  """Lets v1 optimizers in replicas minimise something else than a loss.

  Args:
    strategy: The strategy whose replicas they are.
    scale: Takes the loss of a replica; returns what to minimise.
  """

  def scaled(loss: tf.Tensor) -> Optional[tf.Tensor]:
    is_own = tf.distribute.get_strategy() is strategy and (
        not tf.distribute.in_cross_replica_context())
    return scale(loss) if is_own else None

  with _tf_internals.losses_scaled(scaled):
    yield


def _check_not_divided(loss: tf.Tensor, number: int) -> None:
  """Raises if `loss` is made of one that Keras 3 has divided."""
  pending, seen = [loss], set()
  while pending:
    last = pending.pop()
    reduction = _tf_internals.reduction_of(last) if tf.is_symbolic_tensor(
        last) else _tf_internals.last_reduction()
    if reduction == _tf_internals.MEAN_OF_REPLICAS:
      raise ValueError(
          'A mean loss of Keras 3 must not be used in shards with '
          '`reduction=SUM` or several groups: it is divided by the number of '
          f'all replicas. Received: {last!r}, divided by {number}. Use '
          '`tf.compat.v1.losses`, or `reduction=\'sum\'` and a division of '
          'your own.')
    if tf.is_symbolic_tensor(last) and last.ref() not in seen:
      seen.add(last.ref())
      pending += last.op.inputs


def divided(loss: tf.Tensor, num_shards: int) -> tf.Tensor:
  """Returns `loss` divided by `num_shards`, but for terms that are sums.

  Args:
    loss: The loss of a shard.
    num_shards: How many there are.

  Raises:
    ValueError: It was made from a loss built with `Reduction.SUM`, and is none
      itself.
  """
  if num_shards == 1:
    return loss
  if not tf.is_symbolic_tensor(loss):
    is_sum = _tf_internals.last_reduction() in _SUMS
    return loss if is_sum else loss * (1.0 / num_shards)
  terms = _sums(loss)
  if terms and terms[0][0] is loss:
    return loss
  return batch_loss.with_sums_times(
      num_shards, loss, terms) * (1.0 / num_shards)


def with_whole_sums(loss: tf.Tensor, num_shards: int) -> tf.Tensor:
  """Returns `divided` times `num_shards`: what has the loss for its mean.

  Args:
    loss: The loss of a shard, a tensor of a graph.
    num_shards: How many there are.

  Raises:
    ValueError: See `divided`.
  """
  return batch_loss.with_sums_times(num_shards, loss, _sums(loss))


def _sums(loss: tf.Tensor) -> list:
  """Returns the terms of `loss` that are losses built as sums, and factors."""
  known = _known_behind(loss)
  if loss_kinds.SUM not in known.values():
    return []
  kinds = part_kinds.PartKinds(None, known).now(loss.graph)
  pending, terms = [(loss, 1.0)], []
  while pending:
    term, coefficient = pending.pop()
    if loss_kinds.SUM not in _known_behind(term).values():
      continue
    if kinds.of(term).is_sum:
      terms.append((term, coefficient))
      continue
    parts = batch_loss.parts_of(term, kinds)
    if not kinds.of(term).is_mixed or not parts:
      raise ValueError(
          'A loss of shards that is made from one with `Reduction.SUM` must be '
          'the sum of that and others, each times a constant. Received: '
          f'`{loss.name}`, made of `{term.name}` by {term.op.type}. Build it '
          'of losses with another reduction.')
    pending += [(part, coefficient * factor) for part, factor in parts]
  return terms


def _known_behind(tensor: tf.Tensor) -> dict:
  """Returns the kinds of the reduced losses that `tensor` is made from."""
  known, pending, seen = {}, [tensor], set()
  while pending:
    last = _tf_internals.outside_of_functions(pending.pop())
    if last.ref() in seen or not tf.is_symbolic_tensor(last):
      continue
    seen.add(last.ref())
    reduction = _tf_internals.reduction_of(last)
    if same_values.is_declared(last):
      known[last.ref()] = loss_kinds.SAME
    elif reduction not in _NOT_REDUCED:
      known[last.ref()] = (
          loss_kinds.SUM if reduction in _SUMS else loss_kinds.MEAN)
    elif _tf_internals.static_size(last.op):
      known[last.ref()] = loss_kinds.COUNT
    else:
      pending += last.op.inputs
      pending += [output for inner in _tf_internals.ops_of_bodies(last.op)
                  for output in inner.outputs]
  return known
