# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns of exchanges: several may move a variable, and one does in a run."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.variables import worker_variables
from tfplugin.ops import elastic

tf1 = tf.compat.v1


class Turn:
  """Turn of one of several calls of an optimizer to move some variables.

  The first call of a session run that asks gets the turn of this run. Calls may
  ask at the same time.

  Attributes:
    pairs: The variables.
    is_fixed: Whether a call in a branch has the turn, and so keeps it.
    variable: Counts the calls that asked; an int64 scalar on the worker.
  """

  def __init__(self, pairs: Iterable[elastic_pairs.Pair], device: str = '',
               is_fixed: bool = False):
    """Creates the variable on the worker's `device`."""
    self.pairs, self.is_fixed = set(pairs), is_fixed
    self.variable = worker_variables.create(
        lambda: tf.zeros([], tf.int64), 'elastic_average/turns', device)
    with tf.init_scope(), placement.only_on(device):
      self._before = self.variable.read_value()  # Once in a run.

  def take(self, due: tf.Tensor) -> tf.Tensor:
    """Returns whether it is the call's turn; it asks if it is `due`."""
    with placement.only_on(self.variable.device):
      # In the current graph: a branch of v2 waits for no op outside of it.
      before = tf.identity(self._before)

    def ask():
      # An atomic operation, unlike an assignment and a read.
      asked = tf.raw_ops.ResourceCountUpTo(
          resource=self.variable.handle, limit=tf.int64.max, T=tf.int64)
      return tf.equal(asked, before)

    with tf1.control_dependencies([before]), (
        placement.only_on(self.variable.device)):
      return tf.cond(tf.identity(due), ask, lambda: tf.constant(False))


class StepTurns:
  """The turns that one step asks for, each once, and their encoding.

  A separate session run gets one number from its step. For each turn the number
  is doubled, and 1 is added if it is the step's turn.
  """

  def __init__(self, turns: Sequence[Turn] = ()):
    """Stores the turns; a variable is in one of them at most."""
    self._turns = turns
    self._taken = {}

  def join(self, number: tf.Tensor, pairs: Sequence[elastic_pairs.Pair],
           due: tf.Tensor) -> tf.Tensor:
    """Asks for the turns of `pairs` if `due`; returns them with `number`."""
    for turn in self._of(pairs):
      if turn not in self._taken:
        self._taken[turn] = turn.take(due)
      number = 2 * number + tf.cast(self._taken[turn], tf.int64)
    return number

  def split(self, number: tf.Tensor, pairs: Sequence[elastic_pairs.Pair],
            ) -> tuple[tf.Tensor, list[tf.Tensor | None]]:
    """Returns the number, and whether it is the turn of each of `pairs`.

    None stands for a variable that no other call moves.
    """
    result = [None] * len(pairs)
    for turn in reversed(self._of(pairs)):
      number, taken = number // 2, tf.equal(number % 2, 1)
      result = [taken if pair in turn.pairs else other
                for pair, other in zip(pairs, result)]
    return number, result

  def _of(self, pairs):
    return [turn for turn in self._turns
            if any(pair in turn.pairs for pair in pairs)]


def rates_of(rate: elastic.Rate, turns: Sequence[tf.Tensor | None],
             ) -> list[elastic.Rate]:
  """Returns the moving rates of variables: 0 if it is not their turn."""
  shares = [None if turn is None else tf.cast(turn, tf.float64)
            for turn in turns]
  return [rate if share is None else elastic.as_type_of(share, rate) * share
          for share in shares]
