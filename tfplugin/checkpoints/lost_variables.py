# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values for variables that were lost with a parameter server or the chief.

Under elastic averaging the chief has a copy of each averaged variable, newer
than the newest checkpoint. A centre that was lost continues from that copy, the
global step from its last value that the chief has seen. Any other lost variable
is read from the checkpoint. No living parameter server changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.distribute import per_graph
from tfplugin.distribute import placement

tf1 = tf.compat.v1


class LostVariables:
  """Gives variables back to a parameter server that has restarted.

  Attributes:
    has_copies: Whether the chief has copies; without them nothing is given.
    last_step: The last known global step; None: not known.
  """

  def __init__(self, variables: Sequence[tf.Variable], step: tf.Variable):
    """Adds the ops to the current graph.

    `variables` are those of the parameter servers, `step` is the global step.
    """
    self.last_step: int | None = None
    self._step_name = step.op.name
    self._variables = {v.op.name: v for v in variables}
    self._from_copies, are_set = {}, []
    with tf1.control_dependencies(None), tf1.name_scope('lost_variables'):
      for name, (center, copy) in per_graph.current().copies.items():
        if name in self._variables:
          with placement.device_override(copy.device):
            are_set.append(tf1.is_variable_initialized(copy))
            value = copy.read_value()
          with placement.device_override(center.device):
            self._from_copies[name] = tf.group(
                center.assign(value, read_value=False))
      self._are_set = tf.reduce_all(are_set)
    self.has_copies = bool(are_set)

  def give_back(self, who: str, session: tf1.Session, lost: Iterable[str],
                model_dir: str | None) -> bool:
    """Sets the `lost` variables, all at once; returns False if it cannot.

    `who` names the task in messages. `lost` has the names of the ops of the
    variables, `model_dir` the checkpoints.
    """
    lost = set(lost)
    from_copies = lost & self._from_copies.keys()
    if not (self.has_copies and session.run(self._are_set)):
      return False
    values = self._saved(lost - from_copies, model_dir)
    if values is None:
      return False
    # The initializer's second input is the value.
    feeds = {self._variables[name].initializer.inputs[1]: value
             for name, value in values.items()}
    session.run([*(self._from_copies[name] for name in from_copies),
                 *(self._variables[name].initializer for name in values)],
                feeds)
    tf1.logging.info(
        '%s gives %s variables back to a parameter server: %s from its copies, '
        'the others with the newest known step or from the checkpoint.', who,
        len(lost), len(from_copies))
    return True

  def _saved(self, names: Iterable[str],
             model_dir: str | None) -> dict | None:
    """Returns values of the variables; None if one cannot be found."""
    values, reader = {}, None
    for name in names:
      if name == self._step_name and self.last_step is not None:
        values[name] = self.last_step
        continue
      if reader is None:
        checkpoint = model_dir and tf1.train.latest_checkpoint(model_dir)
        if not checkpoint:
          return None
        reader = tf1.train.load_checkpoint(checkpoint)
      # A part of a partitioned variable has no tensor of its name.
      if not reader.has_tensor(name):
        return None
      values[name] = reader.get_tensor(name)
    return values


def split(variables: Sequence[tf.Variable]
          ) -> tuple[list[tf.Variable], list[tf.Variable]]:
  """Returns the variables on parameter servers, and the others."""
  of_servers = [v for v in variables
                if tf.DeviceSpec.from_string(v.device or '').job == 'ps']
  servers = {id(v) for v in of_servers}
  return of_servers, [v for v in variables if id(v) not in servers]


def checkpoint_of(arguments: dict[str, Any]) -> str | None:
  """Returns the checkpoint that `SessionManager.prepare_session` restores."""
  directory = arguments.get('checkpoint_dir')
  return arguments.get('checkpoint_filename_with_path') or (
      tf1.train.latest_checkpoint(directory) if directory else None)


class OwnVariables:
  """Restores the variables that were lost with the chief, and no others.

  Under elastic averaging the slots of the chief's optimizer are saved but lie
  on the chief, while parameter servers hold the centre. A chief that restarts
  keeps the servers' variables, and restores its own from the newest checkpoint.
  """

  def __init__(self, variables: Sequence[tf.Variable]):
    """Adds the ops to the current graph; `variables` may be empty."""
    self._saver = None
    if variables:
      with tf1.name_scope('own_variables'):
        self._missing = tf1.report_uninitialized_variables(variables)
        self._saver = tf1.train.Saver(variables)
      self._initialize = tf1.variables_initializer(variables)

  def restore(self, who: str, session: tf1.Session,
              arguments: dict[str, Any]) -> None:
    """Restores them, if the process has just begun.

    `who` names the task in messages; `arguments` are as of `checkpoint_of`.
    """
    if self._saver is None or not session.run(self._missing).size:
      return
    session.run(self._initialize)
    checkpoint = checkpoint_of(arguments)
    if checkpoint:
      self._saver.restore(session, checkpoint)
      tf1.logging.info('%s restores its own variables from '
                       '%s.', who, checkpoint)
