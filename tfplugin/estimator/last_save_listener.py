# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Holds the chief's last checkpoint back until no worker updates any more."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.hooks import wait_for_workers_hook

tf1 = tf.compat.v1


class LastSaveListener(tf1.train.CheckpointSaverListener):
  """Waits, before a save at the last step, until every worker has ended.

  Saving takes no lock. A checkpoint that is written while workers train may
  hold a variable between its update and its clip, or lack the steps in flight;
  the last checkpoint, which stays, is not to.

  The wait can only be a delay. At its limit the checkpoint is saved all the
  same: the chief's session, in which a worker may be waiting for the chief,
  goes on to its end, and a worker that does not end is for the wait after it.
  """

  def __init__(self, task: cluster_task.ClusterTask, max_steps: Optional[int],
               time_limit_secs: float):
    """Prepares the wait; nothing waits but the chief.

    Args:
      task: The task of this process.
      max_steps: The global step at which training ends; None if the input ends
        it, and then nothing waits.
      time_limit_secs: The limit in seconds, for all the saves together.
    """
    self._task = task
    self._max_steps = max_steps
    self._time_limit_secs = time_limit_secs
    self._has_waited = False

  def before_save(self, session: tf1.Session, global_step_value: int) -> None:
    """Waits; see the class."""
    del session
    if (self._has_waited or self._max_steps is None or
        global_step_value < self._max_steps):
      return
    self._has_waited = True
    try:
      wait_for_workers_hook.wait_for_workers(self._task, self._time_limit_secs)
    except TimeoutError as error:
      tf1.logging.warning('%s The checkpoint is saved as it is.', error)
