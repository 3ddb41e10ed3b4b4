# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Global variables that the chief itself holds, and loses with its process.

Under elastic averaging, the slots of the chief's optimizer are saved but lie on
the chief, while parameter servers hold the centre. A chief that restarts keeps
the servers' variables as they are. It restores its own from the newest
checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def split(variables: Sequence[tf.Variable]
          ) -> tuple[list[tf.Variable], list[tf.Variable]]:
  """Returns the variables on parameter servers, and the others."""
  of_servers = [v for v in variables
                if tf.DeviceSpec.from_string(v.device or '').job == 'ps']
  servers = {id(v) for v in of_servers}
  return of_servers, [v for v in variables if id(v) not in servers]


class OwnVariables:
  """Restores the variables that were lost with the chief, and no others."""

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

    `who` names the task in messages. `arguments` of
    `SessionManager.prepare_session` name a checkpoint, or a directory, whose
    newest checkpoint is used.
    """
    if self._saver is None or not session.run(self._missing).size:
      return
    session.run(self._initialize)
    checkpoint = arguments.get('checkpoint_filename_with_path')
    if not checkpoint and arguments.get('checkpoint_dir'):
      checkpoint = tf1.train.latest_checkpoint(arguments['checkpoint_dir'])
    if checkpoint:
      self._saver.restore(session, checkpoint)
      tf1.logging.info('%s takes its own variables from %s.', who, checkpoint)
