# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Untrained variables without an average: a rate, a mask, a position.

A variable is averaged if it is trained, or if the step writes it from data, as
it does moving statistics. The average of two values of any other variable would
be neither of them. An exchange copies such values whole:

  shared: a hook, a feed or another program sets the variable. The value that
    was set last reaches the centre, and from there every copy.
  counted: the step writes the variable, but from no data: a float counter, the
    position of a schedule. Each worker keeps its own value. The centre takes
    that of the worker that exchanged last.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic.overlap import separate_run

tf1 = tf.compat.v1

# The methods of variables that write a value as it is.
_GIVEN = ('assign', 'scatter_update')


def print_of(value: tf.Tensor) -> tf.Tensor:
  """Returns an 8-byte fingerprint of a tensor of any type and shape."""
  return prints_of([value])[0]


def prints_of(values: Sequence[tf.Tensor]) -> tf.Tensor:
  """Returns the fingerprints, `[len(values), 8]`, by two ops for each value."""
  shape, method = tf.constant([1, -1]), tf.constant('farmhash64')
  return tf.concat([tf.fingerprint(tf.reshape(value, shape), method)
                    for value in values], 0)


class Unaveraged(NamedTuple):
  """Untrained variables that no exchange averages; see the module.

  Attributes:
    shared: Variables that are set from outside the step.
    counted: Variables that the step writes, but not from data.
  """

  shared: Sequence[elastic_pairs.Pair] = ()
  counted: Sequence[elastic_pairs.Pair] = ()

  @property
  def pairs(self) -> list[elastic_pairs.Pair]:
    """All of them."""
    return [*self.shared, *self.counted]


def of_step(pairs: Sequence[elastic_pairs.Pair], train_ops: Sequence[Any],
            inputs: Sequence[tf.Operation] = ()) -> Unaveraged:
  """Returns the variables without an average in the step of `train_ops`.

  `inputs` are the features and labels, which may be constants. A variable with
  an `aggregation` is averaged unless the step is seen to write it.
  """
  candidates = [pair for pair in pairs if not pair.trainable]
  if not candidates:
    return Unaveraged()
  step = graph_order.upstream(graph_order.operations_of(train_ops))
  data = {*inputs, *_variables(p for p in pairs if p.trainable)}
  written = [pair for pair in candidates if any(
      write.root in step for write in _writes_of(pair))]
  return Unaveraged(
      [pair for pair in _may_be_set(candidates) if pair not in written],
      [pair for pair in written if not _is_from(
          pair, lambda write: write.root in step,
          lambda op: op in data or _tf_internals.brings_value(op))])


def of_gradients(pairs: Sequence[elastic_pairs.Pair],
                 gradients: Sequence[Any]) -> Unaveraged:
  """Returns the variables without an average, where the step is not known.

  An optimizer knows the gradients that it applies. A write from the data or
  the computations behind them is one from data. So is a write in UPDATE_OPS
  from a trained variable. The gradients may be in a branch, but not the writes.
  """
  with tf.init_scope():
    return _of_gradients(pairs, gradients)


def _of_gradients(pairs, gradients):
  candidates = [pair for pair in pairs if not pair.trainable]
  if not candidates:
    return Unaveraged()
  updates = graph_order.upstream(graph_order.operations_of(
      tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)))
  model = _behind(graph_order.operations_of(gradients))
  data = {op for op in model if not _tf_internals.is_constant_or_read(op)} | {
      op for op in updates if _tf_internals.brings_value(op)}
  trained = _variables(p for p in pairs if p.trainable)
  counted, shared = [], []
  for pair in candidates:
    writes = _writes_of(pair)
    if any(write.root in updates for write in writes):
      if not _is_from(pair, lambda write: write.root in updates,
                      lambda op: op in data or op in trained):
        counted.append(pair)
    elif pair in _may_be_set([pair]) and not _is_from(
        pair, lambda write: True, lambda op: op in data):
      shared.append(pair)
  return Unaveraged(shared, counted)


def _behind(operations: Iterable[tf.Operation]) -> set[tf.Operation]:
  """Returns the ops whose values `operations` use, also outside a function."""
  found, pending = set(), set(operations)
  while pending:
    found |= graph_order.upstream(pending, of_values=True)
    pending = {outside.op for op in found for tensor in op.outputs
               if (outside := _tf_internals.outside_of_functions(tensor))
               is not tensor} - found
  return found


def _may_be_set(pairs: Sequence[elastic_pairs.Pair],
                ) -> list[elastic_pairs.Pair]:
  return [pair for pair in pairs if not pair.trainable and
          pair.local.aggregation == tf.VariableAggregation.NONE]


def _variables(pairs: Iterable[elastic_pairs.Pair]) -> set[tf.Operation]:
  return {_own_op(copy) for pair in pairs for copy in pair.copies}


def _own_op(variable: tf.Variable) -> tf.Operation:
  # The `op` of a copy is that of its centre.
  return getattr(variable, 'handle', variable).op


def _is_from(pair: elastic_pairs.Pair, counts: Callable, is_data: Callable,
             ) -> bool:
  """Returns whether writes that count use data, maybe by other variables."""
  pending, seen = list(_writes_of(pair)), set()
  while pending:
    write = pending.pop()
    if not counts(write):
      continue
    for op in _tf_internals.ops_of_value(write) - seen:
      if is_data(op):
        return True
      seen.add(op)
      if _tf_internals.makes_variable(op):
        pending += _tf_internals.writes_through(op.outputs[0])
  return False


def _writes_of(pair: elastic_pairs.Pair) -> list[Any]:
  graph = tf1.get_default_graph()
  return [write for copy in pair.copies
          for write in _tf_internals.writes_of(copy, graph)]


class Written(NamedTuple):
  """Trained variables that the ops of a program write.

  Attributes:
    computed: An optimizer writes them, or an assignment of a computed value.
    set_by_hand: Only assignments of given values, e.g. pretrained ones, do.
  """

  computed: Sequence[elastic_pairs.Pair] = ()
  set_by_hand: Sequence[elastic_pairs.Pair] = ()


def written_by_program(pairs: Iterable[elastic_pairs.Pair]) -> Written:
  """Returns the variables that ops write after their start from a centre."""
  found = Written([], [])
  for pair in pairs:
    own = _variables([pair])
    writes = [write for write in _writes_of(pair)
              if not _is_start(pair, write, own)]
    if any(_tf_internals.method_of_write(write.op) not in _GIVEN or any(
        _tf_internals.makes_variable(tensor.op)
        for op in _tf_internals.ops_of_value(write) - {write.op}
        for tensor in op.inputs) for write in writes):
      found.computed.append(pair)
    elif writes:
      found.set_by_hand.append(pair)
  return found


def _is_start(pair, write, own: set[tf.Operation]) -> bool:
  """Returns whether a write is an initializer, a Saver's, or the centre's."""
  return write.op is pair.local.initializer or any(
      _tf_internals.initializes(write.op, op.outputs[0]) for op in own) or (
          _tf_internals.method_of_write(write.op) in _GIVEN and
          _own_op(pair.center) in _tf_internals.ops_of_value(write))


class SetValues:
  """Exchange of variables without an average."""

  def __init__(self, unaveraged: Unaveraged, device: str, runs: list,
               seen: dict[elastic_pairs.Pair, tf.Variable] | None = None):
    """Adds fingerprints of the values seen last; `runs` gets the exchange.

    All calls of an optimizer share the fingerprints `seen`, by variable. Else a
    call would give a value that another call has taken from the centre.
    """
    self.unaveraged = unaveraged
    self._device, self._runs, self._made = device, runs, None
    self._run: separate_run.SeparateRun | None = None
    self._seen = {} if seen is None else seen
    for pair in self.pairs:
      if pair not in self._seen:
        self._seen[pair] = placement.worker_variable(
            lambda pair=pair: print_of(pair.first_value),
            f'elastic_average/seen/{pair.center.op.name}', device,
            is_listed=False)

  @property
  def pairs(self) -> list[elastic_pairs.Pair]:
    """The variables."""
    return self.unaveraged.pairs

  def variables(self) -> list[tf.Variable]:
    """Returns the added variables, which a session must initialise."""
    return [self._seen[pair] for pair in self.pairs]

  def start_from_centers(self) -> tf.Operation:
    """Returns an op that notes the centres' values as the values seen last."""
    return tf.group(*[elastic_pairs.write(
        self._seen[pair], 'update', print_of(pair.center.read_value()))
                      for pair in self.pairs])

  def after(self, train_op: tf.Operation, due: tf.Tensor,
            name: str | None = None) -> tf.Operation:
    """Returns an op that runs `train_op` and, if `due`, the exchange."""
    if not self.pairs:
      return train_op if name is None else tf.group(train_op, name=name)
    ended = self._exchange_after(train_op, due)
    with tf1.control_dependencies([train_op]):
      with placement.device_override(self._device):
        ended = tf.identity(ended)
      if not (tf.inside_function() or
              branching.current_branch()[1] is not None):
        self._made = ended, train_op, due
      return tf.group(ended, name=name)

  def leave_out(self, pairs: Collection[elastic_pairs.Pair]) -> None:
    """Leaves out variables that a later call averages; not in a branch."""
    if self._made is None or not any(pair in pairs for pair in self.pairs):
      return
    self.unaveraged = Unaveraged(*(
        [pair for pair in each if pair not in pairs]
        for each in self.unaveraged))
    ended, train_op, due = self._made
    with tf.init_scope():
      _tf_internals.redirect_input(
          ended.op, 0, self._exchange_after(train_op, due))

  def _exchange_after(self, train_op, due):
    written = [*(v for pair in self.pairs for v in pair.variables()),
               *self.variables()]
    with tf1.control_dependencies([train_op]):
      if not separate_run.is_useful(self.pairs):
        return branching.cond(due, self._exchange, updated=written)
      self._run = self._run or separate_run.SeparateRun(self._device)
      return self._run.end_step(
          due, tf.zeros([], tf.int64), lambda step: self._exchange(), written,
          self._runs)

  def _exchange(self) -> tf.Tensor:
    return branching.done(
        self._exchanged(pair, self._seen[pair]) for pair in self.pairs)

  def _exchanged(self, pair, seen):
    with placement.device_override(self._device):
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
  return branching.done([
      *(elastic_pairs.write(variable, 'update', value)
        for variable in (pair.center, *pair.copies)),
      elastic_pairs.write(seen, 'update', print_)])


def _taken(pair, seen) -> tf.Tensor:
  """Copies the centre's value to the copies if another worker has set it."""
  with placement.device_override(pair.center.device):
    print_ = print_of(elastic_pairs.read(pair.center))

  def copy_center():
    value = elastic_pairs.read(pair.center)
    return branching.done([
        *(elastic_pairs.write(copy, 'update', value) for copy in pair.copies),
        elastic_pairs.write(seen, 'update', print_)])

  return branching.cond(
      tf.reduce_any(tf.not_equal(print_, seen.read_value())), copy_center,
      updated=[*pair.variables(), seen])


def describe(pairs: Sequence[elastic_pairs.Pair],
             unaveraged: Sequence[Unaveraged], state: Collection[str]) -> str:
  """Returns a log line of the variables of each kind; `state` is local."""
  centers = {pair.center.op.name for pair in pairs}
  shared = [pair for each in unaveraged for pair in each.shared]
  counted = [pair for each in unaveraged for pair in each.counted]
  averaged = [pair for pair in pairs if pair not in (*shared, *counted)]
  kinds = {
      'trained and averaged': [p for p in averaged if p.trainable],
      'statistics, averaged': [p for p in averaged if not p.trainable],
      'shared': shared,
      'counted by each worker': counted}
  names = {kind: [p.center.op.name for p in of_kind]
           for kind, of_kind in kinds.items()}
  names['shared'] += [
      v.op.name for v in tf1.global_variables()
      if v.op.name not in centers and v.op.name not in state]
  copies = {id(copy) for p in pairs for copy in p.copies}
  names['local to each worker'] = [
      v.op.name for v in tf1.local_variables()
      if id(v) not in copies and v.op.name not in centers] + [
          v.op.name for v in tf1.global_variables() if v.op.name in state]
  return '; '.join(f'{kind}: {", ".join(of_kind) or "none"}'
                   for kind, of_kind in names.items())
