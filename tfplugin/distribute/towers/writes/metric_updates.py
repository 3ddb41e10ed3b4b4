# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of metrics, which towers share and update one after the other.

A metric that sees the first rows and then the next ones has the value of one
device with smaller batches. That holds for sums over rows. A mean of a number
for each batch adds the number, and 1, for each batch: of these a tower adds its
share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import part_kinds
from tfplugin.distribute.towers.writes import batch_value
from tfplugin.ops import weighted_sum

# A variable of a metric, and an op that reads or writes it.
Use = tuple[tf.Variable, tf.Operation]


@dataclasses.dataclass(frozen=True)
class Metrics:
  """The metrics of the towers of one run.

  Attributes:
    variables: Their variables.
    ops: For each tower its ops.
    parts: The kinds of the tensors of each tower; none if they are not known.
    shares: Each tower's share of the rows.
    replaced: The ops that write what one device does, whatever the order.
  """

  variables: Sequence[tf.Variable]
  ops: Sequence[Sequence[tf.Operation]]
  parts: Sequence[part_kinds.PartKinds]
  shares: Sequence[weighted_sum.Weight]
  replaced: set[tf.Operation] = dataclasses.field(default_factory=set)

  def uses(self, tower: int) -> list[Use]:
    """Returns the variables and the ops of `tower` that use them."""
    own = set(self.ops[tower])
    return [(variable, op) for variable in self.variables
            for op in variable.handle.consumers()
            if op in own and op is not variable.initializer]

  def finish(self) -> None:
    """Lets each update, and that of the first tower alone, be of all rows."""
    self._weigh()
    self._replace_values()
    self.take_turns()

  def _weigh(self) -> None:
    """Lets what is added for each batch be added once."""
    if not self.parts:
      return
    metrics = {}
    for variable in self.variables:
      metrics.setdefault(variable.op.name.rpartition('/')[0], []).append(
          variable)
    for variables in metrics.values():
      additions = [group for variable in variables
                   for group in self._additions(variable)]
      variable_of = {op: variable for variable, op in self.uses(0)}
      kinds = [self.parts[0].of(group[0].inputs[1]) for group in additions]
      # With a count of batches, any number is one of a batch.
      counts_batches = any(kind.is_same for kind in kinds)
      for group, kind in zip(additions, kinds):
        values = [op.inputs[1] for op in group]
        if kind.is_same and len(set(batch_value.check_constants(
            variable_of[group[0]], 'assign_add', values, self.parts))) > 1:
          continue  # Numbers of rows.
        value = batch_value.of_all(
            values, self.parts, self.shares) if kind.is_mean else None
        if value is not None and not self._read_by(values[0]) - {
            variable_of[group[0]].ref()}:
          _redirect(group, [value] + list(map(tf.zeros_like, values[1:])))
          self.replaced.update(group)
        elif kind.is_mean or counts_batches and not kind.is_sum:
          _redirect(group, [weighted_sum.weighted_sum([value], [share])
                            for value, share in zip(values, self.shares)])

  def take_turns(self) -> None:
    """Orders the updates, the first tower's behind those of the others.

    So what the first tower makes of an update, a summary say, is of all rows.
    """
    before = {}
    for tower in (*range(1, len(self.ops)), 0):
      uses = [use for use in self.uses(tower) if use[1] not in self.replaced]
      writes = [(variable, op) for variable, op in uses
                if not _tf_internals.reads_variable(op)]
      behind = _behind([op for _, op in writes])
      for variable, op in uses:
        if op in behind:
          _tf_internals.add_control_inputs(op, before.get(variable.ref(), ()))
      for ref in {variable.ref() for variable, _ in writes}:
        before[ref] = [op for variable, op in writes if variable.ref() == ref]

  def _replace_values(self) -> None:
    """Lets all towers assign what one device would.

    Raises:
      ValueError: A value is not made of the variables, and towers do not have
        it in common.
    """
    for variable in self.variables if self.parts else ():
      for group in self._groups(variable, _tf_internals.assigns_variable):
        values = [op.inputs[1] for op in group]
        kind = self.parts[0].of(values[0])
        reads = self._read_by(values[0])
        if reads and not kind.is_mean or reads - {variable.ref()}:
          continue  # The towers' turns: a maximum so far, say.
        value = batch_value.of_all(values, self.parts, self.shares)
        if value is None and reads:
          continue
        if value is None:
          raise batch_value.unknown(variable, 'assign', values[0],
                                    self.parts[0])
        _redirect(group, [value] * len(group))
        self.replaced.update(group)

  def _read_by(self, value: tf.Tensor) -> set:
    """Returns the references of the variables that `value` is made of."""
    behind = _behind([value.op])
    return {variable.ref() for variable in self.variables
            if variable.handle.op in behind}

  def _additions(self, variable: tf.Variable) -> list:
    return [] if variable.shape.rank else self._groups(
        variable, _tf_internals.adds_to_variable)

  def _groups(self, variable: tf.Variable, is_wanted) -> list:
    """Returns for each write its op in each tower, if all have it."""
    by_tower = [[op for of, op in self.uses(tower)
                 if of is variable and is_wanted(op)]
                for tower in range(len(self.ops))]
    return list(zip(*by_tower)) if len(set(map(len, by_tower))) == 1 else []


def _redirect(group: Sequence[tf.Operation],
              values: Sequence[tf.Tensor]) -> None:
  for op, value in zip(group, values):
    _tf_internals.redirect_input(op, 1, value)


def _behind(writes: Sequence[tf.Operation]) -> set[tf.Operation]:
  """Returns `writes`, and the ops that their values are made of."""
  pending, seen = list(writes), set()
  while pending:
    op = pending.pop()
    if op not in seen:
      seen.add(op)
      pending += [tensor.op for tensor in op.inputs]
  return seen
