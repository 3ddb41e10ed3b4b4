# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check that a supported TensorFlow is installed.

Importing this module performs the check. `tfplugin/__init__.py` imports it
before any module that would fail with an obscure error.
"""

from __future__ import annotations

import re

from tfplugin import version

NO_TENSORFLOW = (
    'tfplugin needs TensorFlow, which is not installed. Install it with `pip '
    'install "tfplugin[cpu]"` for CPUs or `pip install "tfplugin[gpu]"` for '
    'GPUs.')


def _numbers(text: str) -> tuple[int, ...]:
  """Returns a version's leading numbers: `'2.15.0-rc1'` is (2, 15, 0)."""
  leading = re.match(r'[\d.]*', text).group()
  return tuple(int(part) for part in leading.split('.')[:3] if part)


def check(tensorflow_version: str) -> None:
  """Raises ImportError unless `tfplugin/version.py` has it in its range."""
  low, high = version.MIN_TENSORFLOW, version.MAX_TENSORFLOW
  if _numbers(low) <= _numbers(tensorflow_version) < _numbers(high):
    return
  raise ImportError(
      f'tfplugin {version.__version__} needs TensorFlow >= {low} and < {high}. '
      f'Received: TensorFlow {tensorflow_version}. Install one in the range '
      f'with `pip install "tensorflow>={low},<{high}"`.')


try:
  import tensorflow as tf
except ModuleNotFoundError as error:
  if error.name != 'tensorflow':
    raise  # TensorFlow is installed, but a module that it needs is missing.
  raise ImportError(NO_TENSORFLOW) from error

if not hasattr(tf, '__version__'):
  # An empty directory of that name, left by an interrupted removal.
  raise ImportError(NO_TENSORFLOW)
check(tf.__version__)
