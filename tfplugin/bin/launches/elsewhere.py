# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a launch knows of the tasks that other launches start.

No word goes between launches. Each task that trains has a server as long as it
lives, so a look at its port says whether it is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.distribute import time_limit
from tfplugin.hooks.endings import contact

_LOOK_SECS = 2.0
_START_LIMIT_SECS = 600.0
# A task that starts again is away for as long, besides the delay before it.
AWAY_SECS = 30.0


class Elsewhere:
  """Tells when the tasks of other launches that train have ended.

  Those that parameter servers and an evaluator of this launch work for.
  """

  def __init__(self, cluster: Mapping[str, Sequence[str]],
               names: Sequence[str], away_secs: float):
    """Looks at nothing yet.

    Args:
      cluster: The addresses of the tasks, by job.
      names: The tasks, e.g. `worker:1`.
      away_secs: Once one of them was there: after how many seconds without any
        of them they have ended.
    """
    self._cluster_spec = tf.train.ClusterSpec(dict(cluster))
    self._names = names
    self._away_secs = away_secs
    self._seen = None
    self._next_look = float('-inf')
    self._patience = time_limit.Patience('This launch', _START_LIMIT_SECS)

  def have_ended(self) -> bool:
    """Whether they have; looks now and then, to be called often.

    Raises:
      TimeoutError: none has come; they are named.
    """
    now = time.monotonic()
    if now >= self._next_look:
      self._next_look = now + _LOOK_SECS
      self._look(now)
    return (self._seen is not None and
            now - self._seen >= self._away_secs)

  def _look(self, now: float) -> None:
    away = []
    for name in self._names:
      gone = contact.unreachable(self._cluster_spec, [name])
      if not gone:
        self._seen = now
        return
      away += gone
    if self._seen is None:
      self._patience.check(', '.join(away), 'Call tfplugin-launch on the other '
                           'machines, too, with the same flags.')
