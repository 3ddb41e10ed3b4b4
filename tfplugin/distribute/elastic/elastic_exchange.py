# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""When and between which variables the elastic rule is run in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_variables
from tfplugin.ops import elastic

tf1 = tf.compat.v1

ElasticPair = elastic_variables.ElasticPair


class ElasticExchange:
  """The variable pairs of one graph and their exchanges in one step.

  Attributes:
    local_step: Counts the worker's steps; local to the worker.
    communicating: A boolean tensor, whether this step is one with an exchange.
    always_communicates: Whether every step is; then no condition is needed.
    counts: The updates of the global step, which end with the step.
    is_finished: Whether the step is built, with its exchange.
  """

  def __init__(self, local_step: tf.Variable, communication_period: int,
               moving_rate: float, rho: float, sparse: bool):
    """Starts a graph with no pairs.

    Args:
      local_step: The worker's step counter, an int64 scalar.
      communication_period: Steps from one exchange to the next.
      moving_rate: The part of the difference that an exchange moves.
      rho: The weight of the exploration penalty.
      sparse: Whether tables with sparse gradients exchange touched rows only.
    """
    self.local_step = local_step
    self.always_communicates = communication_period == 1
    self.counts = []
    self.is_finished = False
    self._moving_rate = moving_rate
    self._rho = rho
    self._sparse = sparse
    self._pairs = {}
    self._touched = {}
    self._exchanged = set()
    # At the root: whoever asks first may be under control dependencies that
    # come after what waits for the answer.
    with tf1.control_dependencies(None):
      self.communicating = tf.equal(
          tf.math.floormod(local_step.read_value() + 1, communication_period),
          0)

  def add(self, pair: ElasticPair) -> None:
    """Takes `pair` into the exchanges."""
    self._pairs[pair.local.ref()] = pair

  def pair_of(self, local: tf.Variable) -> Optional[ElasticPair]:
    """The pair whose local copy is `local`, or None."""
    return self._pairs.get(local.ref())

  def penalized(self, gradient, pair: ElasticPair):
    """Adds the gradient of the exploration penalty to `gradient`.

    Args:
      gradient: A tensor or `tf.IndexedSlices`, the gradient at `pair.local`.
      pair: The variable it belongs to.

    Returns:
      `gradient` itself without a penalty, else a tensor: the penalty pulls at
      every row of a table.
    """
    if pair.local_center is None:
      return gradient
    return add_penalty(gradient, pair.local.read_value(),
                       pair.local_center.read_value(), self._rho)

  def track_rows(self, gradient, pair: ElasticPair):
    """Remembers which rows a sparse gradient touches.

    Args:
      gradient: The gradient at `pair.local`.
      pair: The variable it belongs to.

    Returns:
      `gradient`, which waits for the rows to be marked.
    """
    if not self._sparse or not isinstance(gradient, tf.IndexedSlices):
      return gradient
    key = pair.local.ref()
    if key not in self._touched:
      self._touched[key] = _row_marks(pair)
    marks = self._touched[key]
    with tf1.device(pair.local.device):
      mark = marks.scatter_update(
          tf.IndexedSlices(
              tf.ones_like(gradient.indices, tf.bool), gradient.indices))
    return after(gradient, [mark])

  def exchange(self, pairs: Optional[Sequence[ElasticPair]] = None):
    """Runs the elastic rule over `pairs` if this step is one of communication.

    Args:
      pairs: None for all that have not had their exchange in this graph.

    Returns:
      An operation, or a tensor to depend on.
    """
    if pairs is None:
      pairs = list(self._pairs.values())
    pairs = [p for p in pairs if p.local.ref() not in self._exchanged]
    self._exchanged.update(p.local.ref() for p in pairs)
    if not pairs:
      return tf.no_op()

    def communicate():
      with tf1.control_dependencies([self._exchange_one(p) for p in pairs]):
        return tf.constant(True)

    if self.always_communicates:
      return communicate()
    return tf1.cond(self.communicating, communicate, lambda: tf.constant(False))

  def _exchange_one(self, pair: ElasticPair) -> tf.Operation:
    marks = self._touched.get(pair.local.ref())
    if marks is not None:
      return _exchange_rows(pair, marks, self._moving_rate)
    center = pair.center.read_value()
    with tf1.device(pair.local.device):
      center = tf.identity(center)
      difference = elastic.elastic_difference(pair.local.read_value(), center,
                                              self._moving_rate)
    updates = [pair.local.assign_sub(difference, read_value=False),
               pair.center.assign_add(difference, read_value=False)]
    if pair.local_center is not None:
      updates.append(pair.local_center.assign(center, read_value=False))
    return tf.group(*updates)


def add_penalty(gradient, copy: tf.Tensor, local_center: tf.Tensor,
                rho: float) -> tf.Tensor:
  """Adds the gradient of the exploration penalty to `gradient`.

  Args:
    gradient: A tensor or `tf.IndexedSlices`, the gradient at `copy`.
    copy: The value of the local copy.
    local_center: The centre as it was seen last.
    rho: The weight of the penalty.
  """
  with tf.GradientTape() as tape:
    tape.watch(copy)
    penalty = elastic.exploration_penalty([copy], [local_center], rho)
  return tf.convert_to_tensor(gradient) + tape.gradient(penalty, copy)


def after(gradient, operations):
  """Returns `gradient`, available only once `operations` have run."""
  with tf1.control_dependencies(operations):
    if isinstance(gradient, tf.IndexedSlices):
      return tf.IndexedSlices(
          tf.identity(gradient.values), tf.identity(gradient.indices),
          gradient.dense_shape)
    return tf.identity(gradient)


def _row_marks(pair: ElasticPair) -> tf.Variable:
  """A boolean per row of `pair`, local to the worker."""
  with tf.init_scope(), tf1.device(pair.local.device):
    return tf1.Variable(
        tf.zeros([pair.local.shape[0]], tf.bool),
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES],
        name='touched_rows')


def _exchange_rows(pair: ElasticPair, marks: tf.Variable,
                   moving_rate: float) -> tf.Operation:
  """Runs the elastic rule over the marked rows, and clears the marks."""
  with tf1.device(pair.local.device):
    rows = tf.reshape(tf.where(marks.read_value()), [-1])
    copy = tf.gather(pair.local, rows)
    center = tf.identity(pair.center.sparse_read(rows))
    difference = tf.IndexedSlices(
        elastic.elastic_difference(copy, center, moving_rate), rows)
  moves = [pair.local.scatter_sub(difference),
           pair.center.scatter_add(difference)]
  if pair.local_center is not None:
    moves.append(
        pair.local_center.scatter_update(tf.IndexedSlices(center, rows)))
  with tf1.control_dependencies(moves):
    return marks.assign(tf.zeros_like(marks), read_value=False)
