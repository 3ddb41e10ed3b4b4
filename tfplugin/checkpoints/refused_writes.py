# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes that wait while a file system refuses them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files

tf1 = tf.compat.v1

_RETRY_SECS = 1.0
_SAY_EVERY_SECS = 30.0
# Messages of full and of read-only file systems.
_FULL = ('No space left on device', 'Disk quota exceeded', 'File too large')
_CLOSED = ('Read-only file system', 'Permission denied')


def written(write: Callable[[], Any], directory: str, who: str,
            limit_secs: float) -> Any:
  """Calls `write`; waits and repeats while the file system refuses.

  A full one is waited for in any case. A read-only one is waited for if it has
  been written to before: if the directory holds a checkpoint.

  Raises OSError, which names the task `who`, after `limit_secs` seconds.
  """
  start = time.monotonic()
  said = float('-inf')
  while True:
    try:
      return write()
    # The second means a file that is too large, or the end of an input.
    except (tf.errors.ResourceExhaustedError, tf.errors.OutOfRangeError,
            tf.errors.PermissionDeniedError) as e:
      reason = _reason(e, directory)
      if reason is None:
        raise
      is_full = reason in _FULL
      aim = 'for space to save' if is_full else 'to write'
      now = time.monotonic()
      if now - start > limit_secs:
        remedy = 'Make room' if is_full else 'Make it writable'
        raise OSError(
            f'{who} waited {limit_secs:g} s {aim} in {directory}: {reason}. '
            f'{remedy}, and start it again.') from e
      if now - said > _SAY_EVERY_SECS:
        said = now
        tf1.logging.warning('%s waits %s in %s, %g s at most: %s.', who, aim,
                            directory, limit_secs, reason)
      if is_full:
        checkpoint_files.remove_left_behind(directory)
      time.sleep(_RETRY_SECS)


def _reason(error: tf.errors.OpError, directory: str) -> Optional[str]:
  """Returns the file system's message if a wait can help, or None."""
  for text in (*_FULL, *_CLOSED):
    if text in error.message:
      can_help = text in _FULL or tf.train.latest_checkpoint(directory)
      return text if can_help else None
  return None
