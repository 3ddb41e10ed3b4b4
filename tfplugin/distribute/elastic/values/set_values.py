# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Untrained variables that no step writes: a rate, a temperature, a mask.

A hook, a feed or another program sets such a variable. An average of the old
and the new value would be neither. So these variables are shared: an exchange
copies the value that was set last to the centre, and from there to every copy.

Variables that the step writes, such as moving statistics, are averaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.variables import worker_variables

tf1 = tf.compat.v1


def print_of(value: tf.Tensor) -> tf.Tensor:
  """Returns an 8-byte fingerprint of a tensor of any type and shape."""
  return tf.fingerprint(tf.reshape(value, [1, -1]))[0]


def unwritten(pairs: Sequence[elastic_pairs.Pair],
              train_ops: Sequence[Any]) -> list[elastic_pairs.Pair]:
  """Returns the untrained variables that the step of `train_ops` never writes.

  A variable with an `aggregation` is never among them: it is averaged.
  """
  candidates = _may_be_set(pairs)
  if not candidates:
    return []
  step = graph_order.upstream(graph_order.operations_of(train_ops))
  return [pair for pair in candidates if not any(
      write.root in step for write in _writes_of(pair))]


def not_from_data(pairs: Sequence[elastic_pairs.Pair],
                  gradients: Sequence[Any]) -> list[elastic_pairs.Pair]:
  """Returns the untrained variables that are never written from data.

  For an optimizer that knows only the gradients that it applies, not the step.
  """
  candidates = _may_be_set(pairs)
  if not candidates:
    return []
  step = graph_order.upstream(graph_order.operations_of([
      *gradients, *tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)]))
  data = {op for op in step if not _tf_internals.is_constant_or_read(op)}
  return [pair for pair in candidates if not any(
      write.root in step or data & graph_order.upstream([write.root])
      for write in _writes_of(pair))]


def _may_be_set(pairs: Sequence[elastic_pairs.Pair],
                ) -> list[elastic_pairs.Pair]:
  return [pair for pair in pairs if not pair.trainable and
          pair.local.aggregation == tf.VariableAggregation.NONE]


def _writes_of(pair: elastic_pairs.Pair) -> Iterator[Any]:
  graph = tf1.get_default_graph()
  for copy in pair.copies:
    yield from _tf_internals.writes_of(copy, graph)


class SetValues:
  """Exchange of the variables `pairs`, which are set from outside the step."""

  def __init__(self, pairs: Sequence[elastic_pairs.Pair], device: str):
    """Adds, on `device`, a fingerprint of each value that was seen last."""
    self.pairs = pairs
    self._device = device
    self._seen = [worker_variables.create(
        lambda pair=pair: print_of(pair.local.initializer.inputs[1]),
        f'elastic_average/seen/{pair.center.op.name}', device, is_listed=False)
                  for pair in pairs]

  def variables(self) -> list[tf.Variable]:
    """Returns the added variables, which a session must initialise."""
    return self._seen

  def start_from_centers(self) -> tf.Operation:
    """Returns an op that notes the centres' values as the values seen last."""
    return tf.group(*[elastic_pairs.write(
        seen, 'update', print_of(pair.center.read_value()))
                      for pair, seen in zip(self.pairs, self._seen)])

  def after(self, train_op: tf.Operation, due: tf.Tensor,
            name: Optional[str] = None) -> tf.Operation:
    """Returns an op that runs `train_op` and, if `due`, the exchange."""
    if not self.pairs:
      return train_op if name is None else tf.group(train_op, name=name)
    with tf1.control_dependencies([train_op]):
      return tf.group(branching.cond(
          due, self._exchange, lambda: tf.constant(False),
          [v for pair in self.pairs for v in pair.variables()] + self._seen),
                      name=name)

  def _exchange(self) -> tf.Tensor:
    done = [self._exchanged(*each) for each in zip(self.pairs, self._seen)]
    with tf1.control_dependencies(done):
      return tf.constant(True)

  def _exchanged(self, pair, seen):
    with placement.only_on(self._device):
      prints = [print_of(elastic_pairs.read(copy)) for copy in pair.copies]
      changed = [tf.reduce_any(tf.not_equal(p, seen.read_value()))
                 for p in prints]
      # The first copy that was set; there are several with several devices.
      first = tf.argmax(tf.stack([tf.cast(c, tf.int32) for c in changed]))
    return branching.cond(
        tf.reduce_any(tf.stack(changed)),
        lambda: _given(pair, seen, tf.stack(prints)[first], tf.stack(
            [elastic_pairs.read(copy) for copy in pair.copies])[first]),
        lambda: _taken(pair, seen), [*pair.variables(), seen])


def _given(pair, seen, print_, value) -> tf.Tensor:
  """Writes the value that was set to the centre and all copies."""
  with tf1.control_dependencies([
      *(elastic_pairs.write(variable, 'update', value)
        for variable in (pair.center, *pair.copies)),
      elastic_pairs.write(seen, 'update', print_)]):
    return tf.constant(True)


def _taken(pair, seen) -> tf.Tensor:
  """Copies the centre's value to the copies if another worker has set it."""
  with placement.only_on(pair.center.device):
    print_ = print_of(elastic_pairs.read(pair.center))

  def take():
    value = elastic_pairs.read(pair.center)
    with tf1.control_dependencies([
        *(elastic_pairs.write(copy, 'update', value) for copy in pair.copies),
        elastic_pairs.write(seen, 'update', print_)]):
      return tf.constant(True)

  return branching.cond(
      tf.reduce_any(tf.not_equal(print_, seen.read_value())), take,
      lambda: tf.constant(False), [*pair.variables(), seen])


def describe(pairs: Sequence[elastic_pairs.Pair],
             shared: Sequence[elastic_pairs.Pair]) -> str:
  """Returns a log line that lists the variables of each kind.

  `shared` variables are set from outside the step.
  """
  centers = {pair.center.op.name for pair in (*pairs, *shared)}
  kinds = {
      'trained and averaged': [p for p in pairs if p.trainable],
      'statistics, averaged': [p for p in pairs if not p.trainable]}
  names = {kind: [p.center.op.name for p in of_kind]
           for kind, of_kind in kinds.items()}
  names['shared'] = [p.center.op.name for p in shared] + [
      v.op.name for v in tf1.global_variables() if v.op.name not in centers]
  copies = {id(copy) for p in (*pairs, *shared) for copy in p.copies}
  names['local to each worker'] = [
      v.op.name for v in tf1.local_variables()
      if id(v) not in copies and v.op.name not in centers]
  return '; '.join(f'{kind}: {", ".join(of_kind) or "none"}'
                   for kind, of_kind in names.items())
