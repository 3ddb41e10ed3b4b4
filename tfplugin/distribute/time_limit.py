# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The limit of a wait, checked and kept."""

from __future__ import annotations

import contextlib
import math
import numbers
import time
from collections.abc import Iterator
from typing import Optional

import tensorflow as tf

tf1 = tf.compat.v1

_SAY_EVERY_SECS = 20.0
# Not of a thread: strategies build models in threads of their own.
_start_limits = [600.0]


def check(time_limit_secs: float) -> None:
  """Raises unless a wait can have such a limit.

  Args:
    time_limit_secs: The limit in seconds, as the user passed it.

  Raises:
    TypeError: `time_limit_secs` is not a number.
    ValueError: `time_limit_secs` is not positive, or not finite.

  Example:
    >>> check(60.0)
  """
  if isinstance(time_limit_secs, bool) or not isinstance(
      time_limit_secs, numbers.Real):
    raise TypeError('`time_limit_secs` must be a number. Received: '
                    f'{time_limit_secs!r}. Pass e.g. 60.0.')
  if not 0 < time_limit_secs < math.inf:
    raise ValueError('`time_limit_secs` must be positive and finite. '
                     f'Received: {time_limit_secs!r}. Pass e.g. 60.0.')


class Patience:
  """One wait: it says now and then for whom, and it has a limit.

  Example:
    >>> patience = Patience('worker:0', 60.0)
    >>> patience.check('ps:0', 'Look into its log.')
  """

  def __init__(self, who: str, time_limit_secs: Optional[float]):
    """Begins to wait.

    Args:
      who: Waits.
      time_limit_secs: The limit in seconds; None is no limit.
    """
    self._who = who
    self._limit_secs = time_limit_secs
    self._start = self._said = time.monotonic()

  def check(self, whom: str, remedy: str) -> None:
    """To be called again and again while the wait lasts.

    Args:
      whom: Who or what is waited for.
      remedy: What to do about it.

    Raises:
      TimeoutError: The limit is reached.
    """
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
    """Begins the limit anew: what is waited for has made progress."""
    self._start = time.monotonic()


@contextlib.contextmanager
def start_limited_to(time_limit_secs: float) -> Iterator[None]:
  """Sets the limit of starts whose makers know of none, in this process.

  Args:
    time_limit_secs: The limit in seconds.

  Yields:
    Nothing.
  """
  _start_limits.append(time_limit_secs)
  try:
    yield
  finally:
    _start_limits.remove(time_limit_secs)


def start_limit_secs() -> float:
  """Returns the limit of a start whose maker knows of none."""
  return _start_limits[-1]
