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

from tfplugin.distribute import cluster_config

PathLike = Union[str, os.PathLike]


def log_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory of the log files, one for each role."""
  return pathlib.Path(model_dir) / 'logs'


def status_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory of the status files, one for each role."""
  return pathlib.Path(model_dir) / 'status'


def status_path(model_dir: PathLike, task: cluster_config.Task) -> pathlib.Path:
  """Returns the status file of `task`."""
  return status_dir(model_dir) / f'{task.type}-{task.index}.jsonl'


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
def reserved(model_dir: PathLike) -> Iterator[None]:
  """Makes `model_dir` ready for a run and keeps other runs out of it.

  Args:
    model_dir: The directory, which need not exist.

  Yields:
    Nothing. The status files of an earlier run are gone then.

  Raises:
    ValueError: the directory cannot be written to.
    RuntimeError: another run is in it.
  """
  statuses = status_dir(model_dir)
  make_dir('model_dir', statuses)
  # Unlocked when it is closed, and when this process ends, however it ends.
  with open(statuses / 'lock', 'w') as lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
      raise RuntimeError(
          '`model_dir` must be used by one run at a time. Received: '
          f'{model_dir}, where another is running. Wait for its end, or take '
          'another `model_dir`.') from e
    for path in statuses.glob('*.jsonl'):
      path.unlink()
    yield
