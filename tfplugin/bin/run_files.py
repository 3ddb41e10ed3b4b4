# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The places of a run's files in its model_dir."""

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


def eval_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory to which evaluation writes its event files."""
  return pathlib.Path(model_dir) / 'eval'


def figure_path(model_dir: PathLike) -> pathlib.Path:
  """Returns the file of the curves."""
  return pathlib.Path(model_dir) / 'curves.png'


def make_dir(argument: str, path: PathLike) -> None:
  """Makes a directory unless it is there.

  Args:
    argument: The user's argument that the directory is, or is in.
    path: The directory.

  Raises:
    ValueError: the directory cannot be made, or not be written to.
  """
  try:
    os.makedirs(path, exist_ok=True)
    tempfile.TemporaryFile(dir=path).close()
  except OSError as e:
    raise ValueError(f'`{argument}` must be a directory that can be written '
                     f'to. Received: {path} ({e.strerror}). Take '
                     'another.') from e


@contextlib.contextmanager
def reserved(model_dir: PathLike) -> Iterator[int]:
  """Makes `model_dir` ready for a session and keeps other launches out of it.

  What earlier sessions have written stays.

  Args:
    model_dir: The directory, which need not exist.

  Yields:
    The number of the session.

  Raises:
    ValueError: the directory cannot be written to.
    RuntimeError: another run is in it.
  """
  make_dir('model_dir', model_dir)
  # Unlocked when it is closed, and when this process ends, however it ends.
  with open(pathlib.Path(model_dir, LOCK), 'a') as lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
      raise RuntimeError(
          f'model_dir is in use: another launch runs in {model_dir}. Wait for '
          'its end, or choose another directory.') from e
    yield event_files.last_session(model_dir) + 1
