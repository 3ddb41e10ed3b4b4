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
from typing import Optional

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
               names: Sequence[str], away_secs: float, has_chief: bool):
    """Looks at nothing yet.

    Args:
      cluster: The addresses of the tasks, by job.
      names: The tasks, e.g. `worker:1`.
      away_secs: After how many seconds without any of them they have ended.
      has_chief: Whether this launch has the chief: then it can do without them.
    """
    self._cluster_spec = tf.train.ClusterSpec(dict(cluster))
    self._names = names
    self._away_secs = away_secs
    self._has_chief = has_chief
    self._seen: Optional[float] = None
    self._next_look = float('-inf')
    self._patience: Optional[time_limit.Patience] = None

  def look(self) -> None:
    """Looks now and then, to be called often as long as the run lasts."""
    now = time.monotonic()
    if now >= self._next_look:
      self._next_look = now + _LOOK_SECS
      if any(not contact.unreachable(self._cluster_spec, [name])
             for name in self._names):
        self._seen = now

  def have_ended(self) -> bool:
    """Whether they have; to be called once this launch's own have.

    Raises:
      TimeoutError: none has ever come; they are named.
    """
    self.look()
    now = time.monotonic()
    if self._seen is None and self._has_chief:
      self._seen = now
    if self._seen is None:
      self._patience = self._patience or time_limit.Patience(
          'This launch', _START_LIMIT_SECS)
      self._patience.check(
          ', '.join(f'{name} at {self._address(name)}' for name in self._names),
          'Call tfplugin-launch on the other machines, too, with the same '
          'flags.')
      return False
    return now - self._seen >= self._away_secs

  def _address(self, name: str) -> str:
    job, _, index = name.partition(':')
    return self._cluster_spec.task_address(job, int(index))
