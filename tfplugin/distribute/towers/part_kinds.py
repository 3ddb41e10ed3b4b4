# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the tensors of one tower are to the batch, inside of branches, too."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import loss_kinds


class PartKinds:
  """The kinds of the tensors of one tower.

  Attributes:
    num_rows: The rows of the tower, where they are static.
  """

  def __init__(self, graph: Optional[tf.Graph], known: dict,
               num_rows: Optional[int] = None,
               is_own: Callable[[tf.Operation], bool] = lambda op: True):
    """Starts from what is known.

    Args:
      graph: The graph of the towers; None: the outermost one, of any kind.
      known: From `tensor.ref()` to its kind.
      num_rows: The rows of the tower, where they are static.
      is_own: Whether an op of `graph` was made in the tower.
    """
    self._graph = graph
    self._known, self.num_rows = known, num_rows
    self._is_own_of_graph = is_own

  def now(self, graph: tf.Graph) -> loss_kinds.Kinds:
    """Returns the kinds as the ops are now, for tensors of `graph`.

    Args:
      graph: The graph of the towers, or that of a branch or function in it.
    """
    known = dict(self._known)
    kinds = loss_kinds.Kinds(known, self._is_own, self.num_rows)
    for inner in reversed(_tf_internals.graphs_between(graph, self._graph)):
      for outside, inside in inner.captures:
        known[inside.ref()] = kinds.of(outside) if tf.is_symbolic_tensor(
            outside) else loss_kinds.SAME
      kinds = loss_kinds.Kinds(known, self._is_own, self.num_rows)
    return kinds

  def inside(self, graph: tf.Graph) -> loss_kinds.Kinds:
    """Returns what `now` does, when the ops that run `graph` are there.

    So what a function or a loop is given is known, and not captures alone.

    Args:
      graph: As for `now`.
    """
    known = dict(self._known)
    kinds = loss_kinds.Kinds(known, self._is_own, self.num_rows)
    for inner in reversed(_tf_internals.graphs_between(graph, self._graph)):
      call = _tf_internals.call_of(inner)
      pairs = inner.captures if call is None else list(zip(
          call.inputs[len(call.inputs) - len(inner.inputs):], inner.inputs))
      given = [kinds.of(outside) if tf.is_symbolic_tensor(outside) else
               loss_kinds.SAME for outside, _ in pairs]
      for _ in pairs:  # Through a loop, until nothing more is reached.
        before = given
        for results in _tf_internals.repeated_by(call):
          given = [kind if not kind.is_same else loss_kinds.Kinds(
              {**known, **{t.ref(): k for t, k in zip(results[0], given)}},
              self._is_own, self.num_rows).of(result)
                   for kind, result in zip(given, results[1])]
        if given == before:
          break
      known.update((inside.ref(), kind)
                   for (_, inside), kind in zip(pairs, given))
      kinds = loss_kinds.Kinds(known, self._is_own, self.num_rows)
    return kinds

  def of(self, tensor: tf.Tensor) -> loss_kinds.Kind:
    """Returns the kind of `tensor`."""
    return self.now(tensor.graph).of(tensor)

  def may_have_rows(self, tensor: tf.Tensor) -> bool:
    """Whether the form of `tensor` may be that of the rows of the tower."""
    return bool(tensor.shape.rank) and self.num_rows is not None and (
        tf.compat.dimension_value(tensor.shape[0]) in (None, self.num_rows))

  def _is_own(self, op: tf.Operation) -> bool:
    return op.graph is not self._graph or self._is_own_of_graph(op)


def of_batch(batch: Sequence[Any], tower: int) -> tuple[dict, Optional[int]]:
  """Returns the kinds of what a tower is given, and its static rows.

  Args:
    batch: For each tower the nest of the tensors that it is given.
    tower: The index of the tower.
  """
  leaves = [tf.nest.flatten(values) for values in batch]
  known, rows = {}, None
  for leaf, other in zip(leaves[tower], leaves[tower - 1]):
    # All towers get what is not split, scalars for example.
    if not tf.is_tensor(leaf) or leaf is other:
      continue
    for part in tf.nest.flatten(leaf, expand_composites=True):
      known[part.ref()] = loss_kinds.ROWS
    if isinstance(leaf, tf.SparseTensor):
      known[leaf.dense_shape.ref()] = loss_kinds.COUNT
    elif rows is None and isinstance(leaf, tf.Tensor) and leaf.shape.rank:
      rows = tf.compat.dimension_value(leaf.shape[0])
  return known, rows
