# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the files of a run are in its model_dir."""

from __future__ import annotations

import os
import pathlib
from typing import Union

from tfplugin.bin import tf_config

PathLike = Union[str, os.PathLike]


def log_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory of the log files, one for each role."""
  return pathlib.Path(model_dir) / 'logs'


def status_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory in which the roles say where they are."""
  return pathlib.Path(model_dir) / 'status'


def status_path(model_dir: PathLike, task: tf_config.Task) -> pathlib.Path:
  """Returns the file in which `task` says where it is."""
  return status_dir(model_dir) / f'{task.type}-{task.index}.jsonl'


def eval_dir(model_dir: PathLike) -> pathlib.Path:
  """Returns the directory to which evaluation writes its event files."""
  return pathlib.Path(model_dir) / 'eval'


def figure_path(model_dir: PathLike) -> pathlib.Path:
  """Returns the file of the curves."""
  return pathlib.Path(model_dir) / 'curves.png'
