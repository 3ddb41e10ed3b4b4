# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a file of results says of where it was measured."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
from collections.abc import Mapping
from typing import Any

ROOT = pathlib.Path(__file__).absolute().parents[1]


def about() -> dict[str, Any]:
  """Returns the machine, the versions and the commit."""
  import tensorflow as tf
  models = [line.partition(':')[2].strip() for line in pathlib.Path(
      '/proc/cpuinfo').read_text().splitlines()
            if line.startswith('model name')]
  return {
      'machine': models[0] if models else platform.machine(),
      'cores': os.cpu_count(), 'kernel': platform.release(),
      'load_before': os.getloadavg()[0],
      'python': platform.python_version(), 'tensorflow': tf.__version__,
      'commit': subprocess.run(
          ['git', 'describe', '--always', '--dirty'], cwd=ROOT,
          capture_output=True, text=True, check=False).stdout.strip()}


def sentence(found: Mapping[str, Any]) -> str:
  """Returns what a page says of it.

  Args:
    found: From `about`.
  """
  return (f'{found["machine"]}, {found["cores"]} cores, Linux '
          f'{found["kernel"]}, TensorFlow {found["tensorflow"]}, Python '
          f'{found["python"]}, commit {found["commit"]}; load before '
          'the run '
          f'{found["load_before"]:.1f}.')


def free_bytes() -> int:
  """Returns the memory that programs may still take."""
  for line in pathlib.Path('/proc/meminfo').read_text().splitlines():
    name, _, amount = line.partition(':')
    if name == 'MemAvailable':
      return int(amount.split()[0]) * 1024
  raise RuntimeError('/proc/meminfo has no MemAvailable.')
