# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time limit of a wait, and its check."""

from __future__ import annotations

import contextlib
import math
import numbers
import time
from collections.abc import Iterator

import tensorflow as tf

tf1 = tf.compat.v1

_SAY_EVERY_SECS = 20.0
# By the context that sets a limit, the newest last. Not per thread: strategies
# build models in separate threads.
_start_limits: dict[object, float] = {None: 600.0}


def check(argument: str, secs: float | None,
          or_none: bool = False) -> float | None:
  """Returns a user's `argument`, in seconds; raises unless it is valid.

  The error is a TypeError unless it is a number, and a ValueError unless it is
  positive and finite. With `or_none` None is valid, too.

  Example:
    >>> check('time_limit_secs', 60.0)
    60.0
  """
  if or_none and secs is None:
    return None
  remedy = f'Received: {secs!r}. Pass e.g. 60.0{", or None" * or_none}.'
  if isinstance(secs, bool) or not isinstance(secs, numbers.Real):
    raise TypeError(f'`{argument}` must be a number. {remedy}')
  if not 0 < secs < math.inf:
    raise ValueError(f'`{argument}` must be positive and finite. {remedy}')
  return secs


class Patience:
  """One wait with a time limit, which logs its progress every 20 seconds.

  Example:
    >>> patience = Patience('worker:0', 60.0)
    >>> patience.check('ps:0', 'See its log.')
  """

  def __init__(self, who: str, time_limit_secs: float | None):
    """Starts the wait of the task `who`; a limit of None is no limit."""
    self._who = who
    self._limit_secs = time_limit_secs
    self._start = self._said = time.monotonic()

  def check(self, whom: str, remedy: str) -> None:
    """Raises TimeoutError once the limit is reached; call it repeatedly."""
    now = time.monotonic()
    if self._limit_secs is not None and now - self._start > self._limit_secs:
      raise TimeoutError(
          f'{self._who} waited {self._limit_secs:g} s for {whom}. {remedy}')
    if now - self._said >= _SAY_EVERY_SECS:
      self._said = now
      tf1.logging.warning(
          '%s has waited %.0f s for %s%s.', self._who, now - self._start, whom,
          '' if self._limit_secs is None else
          f', and waits {self._limit_secs:g} s at most')

  def restart(self) -> None:
    """Restarts the limit after progress of the awaited task."""
    self._start = time.monotonic()


@contextlib.contextmanager
def start_limited_to(time_limit_secs: float) -> Iterator[None]:
  """Sets this process's limit for starts without their own limit."""
  own = object()  # Contexts may set equal limits.
  _start_limits[own] = time_limit_secs
  try:
    yield
  finally:
    del _start_limits[own]


def start_limit_secs() -> float:
  """Returns the limit, in seconds, of a start without its own limit."""
  return list(_start_limits.values())[-1]
