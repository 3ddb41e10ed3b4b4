# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which ops of a graph were built in which tower.

Towers are built in turns. The ops are noted from one turn to the next; their
names tell nothing, as a model_fn may choose any, absolute ones too.
"""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from tfplugin import _tf_internals


class OpRecord:
  """The ops of the towers of one graph."""

  def __init__(self, graph: tf.Graph, num_towers: int):
    """Starts before the first tower."""
    self._graph = graph
    self._start = self._now()
    self._turns = [[] for _ in range(num_towers)]
    self._known = [(0, frozenset())] * num_towers

  def begin(self, tower: int) -> None:
    """Notes that `tower` goes on: the ops that follow are its own."""
    self._turns[tower].append(slice(self._now(), None))

  def end(self, tower: int) -> None:
    """Notes that the turn of `tower` is over."""
    self._turns[tower][-1] = slice(self._turns[tower][-1].start, self._now())

  def built_in(self, tower: int) -> list[tf.Operation]:
    """Returns the ops that were built in `tower` itself."""
    ops = self._graph.get_operations()
    return [op for turn in self._turns[tower] for op in ops[turn]]

  def is_own(self, tower: int, op: tf.Operation) -> bool:
    """Whether `op` was built in `tower` itself."""
    if op.graph is not self._graph:
      return False
    now = self._now()
    if self._known[tower][0] != now:
      self._known[tower] = now, set(self.built_in(tower))
    return op in self._known[tower][1]

  def ops_of(self, tower: int) -> list[tf.Operation]:
    """Returns the ops of `tower`; those of all towers are the first one's."""
    if tower:
      return self.built_in(tower)
    others = {op for other in range(1, len(self._turns))
              for op in self.built_in(other)}
    return [op for op in self._graph.get_operations()[self._start:]
            if op not in others]

  def _now(self) -> int:
    return len(self._graph.get_operations())


def check_no_accumulators(ops: Iterable[tf.Operation]) -> None:
  """Raises if one of `ops` is a queue of gradients.

  Args:
    ops: The ops of a tower.
  """
  for op in ops:
    if _tf_internals.accumulates_gradients(op):
      raise RuntimeError(
          'Towers must not make accumulators of gradients: each would fill '
          f'its own. Received: {op.name}, made by '
          '`tf.compat.v1.train.SyncReplicasOptimizer` or '
          '`tf.compat.v1.ConditionalAccumulator`. Leave it out: the gradients '
          'of towers are summed within the step. To accumulate over steps use '
          'variables and `assign_add`.')
