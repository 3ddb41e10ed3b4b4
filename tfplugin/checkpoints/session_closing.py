# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Closing of sessions, in a limited time."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from typing import Callable

import tensorflow as tf

tf1 = tf.compat.v1

_CLOSE_LIMIT_SECS = 5.0
# The longest sleep of the thread that tunes.
_EXIT_LIMIT_SECS = 60.0
_closing_threads: set[threading.Thread] = set()


# At exit a module's globals may be gone; the functions' defaults remain.
def close_in_time(close: Callable[[], None],
                  time_limit_secs: float = _CLOSE_LIMIT_SECS,
                  is_the_end: Callable[[], bool] = sys.is_finalizing) -> None:
  """Calls `close`; after a limit, returns while it continues in the background.

  Closing a session waits for the thread that tunes each of its data pipelines.
  Sometimes TensorFlow wakes that thread a moment too early. It then sleeps to
  the end of its period, which doubles from 10 ms up to 60 s. Meanwhile the
  task's server handles no calls of other sessions. After a failure, a new
  session waits too.

  Raises any error of `close` within the limit. `is_the_end` returns whether the
  interpreter ends, and can start no thread. A failed training leaves a session
  that is closed then.
  """
  if is_the_end():
    close()
    return
  failed = []

  def close_and_note():
    try:
      close()
    except Exception as e:  # noqa: BLE001 (raised below, or dropped)
      failed.append(e)
    finally:
      _closing_threads.discard(threading.current_thread())

  closing = threading.Thread(target=close_and_note, daemon=True)
  if not _start(closing):
    close()
    return
  _closing_threads.add(closing)
  closing.join(time_limit_secs)
  if failed:
    raise failed[0]
  if closing.is_alive():
    tf1.logging.info(
        'Closing the session takes more than %g s and continues in the '
        'background: a parameter server is unreachable, or the thread that '
        'autotunes the input sleeps for up to 60 s. No new session is made '
        'before it ends. To avoid this set `options.autotune.enabled = False` '
        'on the input, and numbers instead of '
        '`tf.data.AUTOTUNE`.', time_limit_secs)


@atexit.register
def _wait_at_exit() -> None:
  """Waits for sessions that are still being closed.

  A thread that returns from TensorFlow while the interpreter ends aborts the
  process. A task that has done its work would seem to have failed.
  """
  deadline = time.monotonic() + _EXIT_LIMIT_SECS
  for closing in tuple(_closing_threads):
    closing.join(max(0.0, deadline - time.monotonic()))


def _start(thread: threading.Thread) -> bool:
  """Starts a thread; returns False if the interpreter has begun to end."""
  try:
    thread.start()
  except RuntimeError:  # Python raises it from 3.12 on.
    return False
  return True
