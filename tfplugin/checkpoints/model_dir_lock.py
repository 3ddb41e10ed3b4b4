# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lock that keeps a second run out of a model_dir."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from typing import IO

import tensorflow as tf

from tfplugin.checkpoints import refused_writes

try:
  import fcntl
except ImportError:  # Not on Windows.
  fcntl = None

tf1 = tf.compat.v1

FILE_NAME = 'chief.lock'


@contextlib.contextmanager
def locked(model_dir: str, who: str) -> Iterator[None]:
  """Holds the lock of `model_dir`; the kernel drops it when the process dies.

  The directory need not exist. A file system without locks, such as `gs://...`,
  has no lock. `who` names the task in the file and the message. Raises
  RuntimeError if another process holds the lock, and OSError if the directory
  cannot be written to up to a limit; see `refused_writes`.
  """
  if '://' in model_dir or fcntl is None:
    tf1.logging.info('No lock keeps other runs out of %s.', model_dir)
    yield
    return
  refused_writes.wait_until_writable(model_dir, who)
  with refused_writes.written(
      lambda: open(os.path.join(model_dir, FILE_NAME), 'a+'), model_dir,
      who) as lock:
    if is_taken(lock, model_dir):
      lock.seek(0)
      raise RuntimeError(
          f'model_dir {model_dir} is in use by '
          f'{lock.read().strip() or "another run"}. Wait for its end, or '
          'choose another directory.')
    lock.truncate(0)
    lock.write(f'{who} (process {os.getpid()} on {platform.node()})\n')
    lock.flush()
    yield


def is_taken(lock: IO, model_dir: str | os.PathLike) -> bool:
  """Locks an open file; returns whether another process holds the lock."""
  try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return True
  except OSError as e:  # E.g. a network file system without locks.
    tf1.logging.warning('No lock keeps other runs out of %s: %s.', model_dir,
                        e.strerror)
  return False
