# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saver of variables of which some are local to the chief, as slots may be.

TensorFlow first restores a checkpoint, and then initialises local variables. So
the restored values of local variables would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin.checkpoints import lost_variables
from tfplugin.distribute.sessions import session_interception

tf1 = tf.compat.v1


class LocalStateSaver(tf1.train.Saver):
  """Saver that restores local variables again, once they are initialised.

  It does so in each session that a chief prepares with it, before the hooks see
  the session. A hook may save at once. A session that keeps the state of live
  parameter servers gets the local variables of the newest checkpoint.
  """

  def __init__(self, var_list: Mapping, local: Iterable[tf.Variable],
               **kwargs: Any):
    """Makes the Saver of `var_list`; see `tf.compat.v1.train.Saver`.

    `local` are the local variables; those outside of `var_list` are not saved.
    """
    super().__init__(var_list, **kwargs)
    known = {variable.ref() for variable in local}
    saved = {name: value for name, value in var_list.items()
             if _variables(value) and all(
                 part.ref() in known for part in _variables(value))}
    self._again = self._missing = None
    if saved:
      self._again = tf1.train.Saver(
          saved, name='restore_state', reshape=kwargs.get('reshape', False))
      with tf1.control_dependencies(None):
        # TensorFlow complains of a report that nothing uses.
        self._missing = tf.identity(tf1.report_uninitialized_variables(
            [v for value in saved.values() for v in _variables(value)]))
      session_interception.after_start(self._restore_again)

  def restore(self, sess: tf1.Session, save_path: str) -> None:
    """See base class; warns if an initialisation would reset local variables.

    Args:
      sess: The session.
      save_path: The checkpoint.
    """
    if self._missing is not None and not (
        session_interception.is_starting(sess.graph)):
      names = [name.decode() for name in sess.run(self._missing)]
      if names:
        tf1.logging.warning(
            'The local variables must be initialised before `restore`, and not '
            'after it. Received: a session in which %s are not. Run '
            '`tf.compat.v1.local_variables_initializer()` first, or let a '
            '`tf.compat.v1.train.MonitoredTrainingSession` restore: else the '
            'restored state of the optimizer is lost.', names)
    super().restore(sess, save_path)

  def _restore_again(self, session, arguments):
    checkpoint = lost_variables.checkpoint_of(arguments)
    if arguments.get('saver') is self and checkpoint:
      self._again.restore(session, checkpoint)


def _variables(value: Any) -> list:
  """Returns the variables that a Saver has under one name, if it has any."""
  parts = value if isinstance(value, list) else [value]
  return parts if all(isinstance(v, tf.Variable) for v in parts) else []
