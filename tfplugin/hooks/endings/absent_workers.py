# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warning about a default moving rate that counts absent workers."""

from __future__ import annotations

import threading

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.hooks.endings import contact

tf1 = tf.compat.v1


class AbsentWorkersHook(tf1.train.SessionRunHook):
  """Warns, in the chief, of a default that absent workers make too small.

  The default moving rate of elastic averaging is 0.9 / period / workers, for
  all workers in the cluster's description. If few of them run, the centre
  hardly follows them. The chief logs one warning, and changes no number.
  """

  def __init__(self, task: cluster_task.ClusterTask, after_secs: float = 60.0):
    """Prepares to count, `after_secs` seconds after the first session is made.

    Workers may start a little later than the chief. Other tasks do not count.
    """
    self._task = task
    self._after_secs = after_secs
    self._timer = None

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Starts a timer thread: some addresses take long to fail."""
    del session, coord
    counted = per_graph.current().counted_workers
    if self._task.is_chief and self._task.num_ps and counted and (
        self._timer is None):
      self._timer = threading.Timer(self._after_secs, self._count, [counted])
      self._timer.daemon = True
      self._timer.start()

  def end(self, session: tf1.Session) -> None:
    """Stops the timer."""
    del session
    if self._timer is not None:
      self._timer.cancel()

  def _count(self, counted: int) -> None:
    others = [name for name in self._task.training_tasks
              if name != self._task.name]
    away = contact.unreachable(self._task.cluster_spec, others)
    here = len(others) + 1 - len(away)
    if away and here < counted:
      tf1.logging.warning(
          'The default moving rate of elastic averaging is for %d workers, and '
          '%d take part: the centre follows them %.3g times more slowly than '
          'with the rate for their number. Pass `num_worker=%d` or a '
          '`moving_rate` if the others will not start. Missing: '
          '%s.', counted, here, counted / here, here,
          ', '.join(away[:5]) + ', ...' * bool(away[5:]))
