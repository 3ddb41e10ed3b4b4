# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns of exchanges: several may move a variable, and one does in a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.ops import elastic


@dataclasses.dataclass(eq=False)
class Turn:
  """Variables that the exchanges of several calls of an optimizer move.

  Attributes:
    pairs: The variables.
    take: Returns whether it is the turn of the call that asks, if its exchange
      is due.
    is_fixed: Whether a call in a branch has the turn, and so keeps it.
  """

  pairs: Collection[elastic_pairs.Pair]
  take: Callable[[tf.Tensor], tf.Tensor]
  is_fixed: bool = False


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
