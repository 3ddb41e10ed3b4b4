# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Holds Ctrl-C back until the program asks for it."""

from __future__ import annotations

import signal
import threading

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
  """Notes SIGINT, SIGTERM and SIGHUP while the context is active.

  Outside the main thread, where Python handles no signals, nothing is noted.

  Attributes:
    count: How many signals have come.
  """

  def __init__(self):
    self.count = 0
    self._previous = {}

  def __enter__(self) -> Interrupts:
    if threading.current_thread() is threading.main_thread():
      for number in _SIGNALS:
        self._previous[number] = signal.signal(number, self._note)
    return self

  def __exit__(self, *unused_error) -> None:
    while self._previous:
      # None: the handler was not installed by Python; it cannot be put back.
      number, handler = self._previous.popitem()
      signal.signal(number, handler or signal.SIG_DFL)

  def raise_if_any(self) -> None:
    """Raises `KeyboardInterrupt` if a signal has come."""
    if self.count:
      raise KeyboardInterrupt

  def _note(self, number: int, frame: object) -> None:
    del number, frame
    self.count += 1
