# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refuses to go on without a TensorFlow that tfplugin supports.

Importing this module performs the check; `tfplugin/__init__.py` does so before
anything of tfplugin that would fail obscurely.
"""

from __future__ import annotations

from tfplugin import version

NO_TENSORFLOW = (
    'tfplugin needs TensorFlow, which is not installed. Install it with `pip '
    'install "tfplugin[cpu]"` for CPUs or `pip install "tfplugin[gpu]"` for '
    'GPUs.')


def _numbers(text: str) -> tuple[int, ...]:
  """Returns the leading numbers of a version: `'2.15.0-rc1'` is (2, 15, 0)."""
  numbers = []
  for part in text.split('.')[:3]:
    digits = part.split('-')[0].split('rc')[0]
    if not digits.isdigit():
      break
    numbers.append(int(digits))
  return tuple(numbers)


def check(tensorflow_version: str) -> None:
  """Raises ImportError unless `tensorflow_version` is one of the supported.

  Args:
    tensorflow_version: As `tf.__version__` spells it.

  Raises:
    ImportError: The version is out of the range of `tfplugin/version.py`.
  """
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
    raise  # TensorFlow is there, something that it needs is not.
  raise ImportError(NO_TENSORFLOW) from error

if not hasattr(tf, '__version__'):
  # An empty directory of that name, as an interrupted removal leaves it.
  raise ImportError(NO_TENSORFLOW)
check(tf.__version__)
