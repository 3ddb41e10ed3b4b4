# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Paths of a run's files in its model_dir, and the lock of the directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Union

from tfplugin.events import event_files

PathLike = Union[str, os.PathLike]

LOCK = 'launch.lock'


def log_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory of the log files, one for each role."""
  return pathlib.Path(model_dir) / 'logs'


def make_dir(argument: str, path: PathLike) -> None:
  """Makes a directory unless it exists; raises `ValueError` without access.

  `argument` is the user's argument that the message names.
  """
  try:
    os.makedirs(path, exist_ok=True)
    tempfile.TemporaryFile(dir=path).close()
  except OSError as e:
    raise ValueError(f'`{argument}` must be a directory that can be written '
                     f'to. Received: {path} ({e.strerror}). Choose '
                     'another.') from e


@contextlib.contextmanager
def reserved(model_dir: PathLike) -> Iterator[int]:
  """Prepares `model_dir` for a session, locks it and yields its number.

  The files of earlier sessions stay. If another run is in the directory, a
  `RuntimeError` is raised; if it cannot be written to, a `ValueError`.
  """
  make_dir('model_dir', model_dir)
  # The lock ends when the file is closed or this process ends, even if killed.
  with open(pathlib.Path(model_dir, LOCK), 'a') as lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
      raise RuntimeError(
          f'model_dir is in use: another launch runs in {model_dir}. Wait for '
          'its end, or choose another directory.') from e
    yield event_files.last_session(model_dir) + 1
