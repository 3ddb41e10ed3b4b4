# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signal handler that writes the stacks of a task's threads."""

from __future__ import annotations

import faulthandler
import signal

# None on systems without this signal, such as Windows.
SIGNAL = getattr(signal, 'SIGUSR1', None)
_STDERR = 2


def write_on_signal() -> None:
  """Writes the stacks of all threads to the standard error at each `SIGNAL`.

  This works also while a thread is inside TensorFlow. A handler that the
  program has installed is kept.
  """
  if SIGNAL is not None and signal.getsignal(SIGNAL) is signal.SIG_DFL:
    faulthandler.register(SIGNAL, file=_STDERR)
