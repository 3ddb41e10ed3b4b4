# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The end of a session, which waits for no thread of tf.data without limit.

A session that is closed waits for the thread that tunes each of its data
pipelines. TensorFlow wakes that thread a moment too early, now and then, and it
sleeps on to the end of its period, which doubles from 10 ms up to 60 s. The
task's server takes no other session's calls meanwhile: after a fault a new
session waits, too.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from typing import Callable

import tensorflow as tf

tf1 = tf.compat.v1

LIMIT_SECS = 5.0
# As long as the thread that tunes sleeps at most.
_EXIT_LIMIT_SECS = 60.0

_closings: set[threading.Thread] = set()


# Of a module that is taken apart, functions keep their defaults alone.
def close_in_time(close: Callable[[], None],
                  time_limit_secs: float = LIMIT_SECS,
                  is_the_end: Callable[[], bool] = sys.is_finalizing) -> None:
  """Closes; goes on after a limit, while the closing does in the background.

  Args:
    close: Closes a session.
    time_limit_secs: The limit in seconds.
    is_the_end: Whether the interpreter ends, where no thread begins: a failed
      training leaves a session that is closed then.

  Raises:
    Exception: What `close` raises within the limit.
  """
  if is_the_end():
    close()
    return
  failed = []

  def close_and_note():
    try:
      close()
    except Exception as e:  # noqa: BLE001 (raised below, or told to nobody)
      failed.append(e)
    finally:
      _closings.discard(threading.current_thread())

  closing = threading.Thread(target=close_and_note, daemon=True)
  if not _start(closing):
    close()
    return
  _closings.add(closing)
  closing.join(time_limit_secs)
  if failed:
    raise failed[0]
  if closing.is_alive():
    tf1.logging.info(
        'The session is still being closed after %g s, which is not waited for:'
        ' a parameter server is away, or the thread that tunes the input '
        'sleeps, for up to 60 s, before which no new session is made. Against '
        'that set `options.autotune.enabled = False` on the input, and numbers '
        'in the place of `tf.data.AUTOTUNE`.', time_limit_secs)


@atexit.register
def _wait_at_exit() -> None:
  """Waits for sessions that are still being closed.

  A thread that comes back from TensorFlow while the interpreter ends aborts the
  process: a task that has done its work would seem to have failed.
  """
  deadline = time.monotonic() + _EXIT_LIMIT_SECS
  for closing in tuple(_closings):
    closing.join(max(0.0, deadline - time.monotonic()))


def _start(thread: threading.Thread) -> bool:
  """Starts a thread; False when the interpreter has begun to end."""
  try:
    thread.start()
  except RuntimeError:  # As Python says from 3.12 on.
    return False
  return True
