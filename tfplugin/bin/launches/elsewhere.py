# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Observation of the training tasks that other launches start.

Launches exchange no messages. Each training task has a server as long as it
lives, so a connection to its port shows whether it still exists.
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
# A restarting task is unreachable for this time, besides its restart delay.
AWAY_SECS = 30.0


class Elsewhere:
  """Observer of the training tasks of other launches.

  Parameter servers and an evaluator of this launch work for these tasks.
  """

  def __init__(self, cluster: Mapping[str, Sequence[str]],
               names: Sequence[str], away_secs: float, has_chief: bool):
    """Connects to no task yet.

    The tasks have ended after `away_secs` seconds in which none was reachable.
    With `has_chief` this launch has the chief and can do without them.
    """
    self._cluster_spec = tf.train.ClusterSpec(dict(cluster))
    self._names = names
    self._away_secs = away_secs
    self._has_chief = has_chief
    self._seen: Optional[float] = None
    self._next_look = float('-inf')
    self._patience: Optional[time_limit.Patience] = None

  def look(self) -> None:
    """Connects to the tasks every two seconds, if called at least as often."""
    now = time.monotonic()
    if now >= self._next_look:
      self._next_look = now + _LOOK_SECS
      if any(not contact.unreachable(self._cluster_spec, [name])
             for name in self._names):
        self._seen = now

  def have_ended(self) -> bool:
    """Returns whether the tasks have ended, once this launch's own have.

    If the chief is one of them and none was ever reachable, a `TimeoutError`
    names them after ten minutes.
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
