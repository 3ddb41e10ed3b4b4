# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes that wait while a file system refuses them."""

from __future__ import annotations

import os
import posixpath
import tempfile
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1

# The limit of a wait, unless a caller has another one.
LIMIT_SECS = 300.0
_RETRY_SECS = 1.0
_SAY_EVERY_SECS = 30.0
# Messages of full and of read-only file systems.
_FULL = ('No space left on device', 'Disk quota exceeded', 'File too large')
_CLOSED = ('Read-only file system', 'Permission denied')


class WriteTimeoutError(OSError):
  """Error of a file system that has refused a write up to the limit."""


def written(write: Callable[[], Any], directory: str, who: str,
            limit_secs: float = LIMIT_SECS,
            clear: Callable[[], Any] = lambda: None) -> Any:
  """Calls `write`; waits and repeats while the file system refuses.

  A full one is waited for in any case. A read-only one is waited for if it has
  been written to before: if the directory holds a file. Before each new try
  `clear` deletes the files of the one before, and may be refused likewise.

  Raises an error that names the task `who`: OSError at once, or
  WriteTimeoutError after `limit_secs` seconds.
  """
  start = time.monotonic()
  said = float('-inf')
  is_new_try = False
  while True:
    try:
      if is_new_try:
        clear()
      return write()
    # The second means a file that is too large, or the end of an input.
    except (tf.errors.ResourceExhaustedError, tf.errors.OutOfRangeError,
            tf.errors.PermissionDeniedError, OSError) as e:
      why = reason(e)
      if why is None:
        raise
      is_full = why in _FULL
      if not is_full and not _holds_a_file(directory):
        raise OSError(
            f'model_dir must be a directory that {who} can write to. Received: '
            f'{directory} ({why}). Make it writable, or choose another.'
            ) from e
      aim = 'for space to save' if is_full else 'to write'
      now = time.monotonic()
      if now - start > limit_secs:
        remedy = 'Make room' if is_full else 'Make it writable'
        raise WriteTimeoutError(
            f'{who} waited {limit_secs:g} s {aim} in {directory}: {why}. '
            f'{remedy}, and start it again.') from e
      if now - said > _SAY_EVERY_SECS:
        said = now
        tf1.logging.warning('%s waits %s in %s, %g s at most: %s.', who, aim,
                            directory, limit_secs, why)
      is_new_try = True
      time.sleep(_RETRY_SECS)


def wait_until_writable(directory: str | None, who: str,
                        limit_secs: float = LIMIT_SECS,
                        model_dir: str | None = None) -> None:
  """Waits until a file can be made in a directory, as `written` waits.

  A start writes many files, and TensorFlow raises at the first refusal. A
  missing directory is made. A remote one, such as `gs://...`, and None are not
  tried. `model_dir` is the directory that holds a file; None: `directory`.
  """
  if directory and '://' not in directory:
    written(lambda: _try(directory), model_dir or directory, who, limit_secs)


def _try(directory: str) -> None:
  os.makedirs(directory, exist_ok=True)
  with tempfile.TemporaryFile(dir=directory) as file:
    file.write(b'\0')


def patient_save(who: str, limit_secs: float) -> Callable[..., str | None]:
  """Returns a `session_interception.SaveFn` that waits for the file system.

  For a worker that saves beside the chief, as synchronous ones do.
  """

  def save_patiently(save, saver, session, arguments):
    return written(lambda: save(saver, session, **arguments),
                   posixpath.dirname(arguments['save_path']), who, limit_secs)

  return save_patiently


def reason(error: Exception) -> str | None:
  """Returns the file system's message; None for an error of another kind."""
  message = (error.strerror if isinstance(error, OSError) else
             error.message) or ''
  return next((text for text in (*_FULL, *_CLOSED) if text in message), None)


def _holds_a_file(directory: str) -> bool:
  return tf.io.gfile.isdir(directory) and bool(tf.io.gfile.listdir(directory))
