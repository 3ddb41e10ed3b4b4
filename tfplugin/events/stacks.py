# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets a task say where it is, when it is asked from outside."""

from __future__ import annotations

import faulthandler
import signal

# None where there is no such signal, as on Windows.
SIGNAL = getattr(signal, 'SIGUSR1', None)
_STDERR = 2


def write_on_signal() -> None:
  """Writes the stacks of all threads to the standard error at each `SIGNAL`.

  It works while a thread is inside TensorFlow, too. A program that handles the
  signal itself keeps its handler.
  """
  if SIGNAL is not None and signal.getsignal(SIGNAL) is signal.SIG_DFL:
    faulthandler.register(SIGNAL, file=_STDERR)
