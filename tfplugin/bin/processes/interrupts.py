# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that delay Ctrl-C until the program asks for it."""

from __future__ import annotations

import signal
import threading

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
  """A context that counts SIGINT, SIGTERM and SIGHUP instead of acting on them.

  Outside the main thread, where Python handles no signals, `count` stays 0.
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
      # None: Python did not install the handler and cannot restore it.
      number, handler = self._previous.popitem()
      signal.signal(number, handler or signal.SIG_DFL)

  def raise_if_any(self) -> None:
    """Raises `KeyboardInterrupt` if a signal has arrived."""
    if self.count:
      raise KeyboardInterrupt

  def _note(self, number: int, frame: object) -> None:
    del number, frame
    self.count += 1
