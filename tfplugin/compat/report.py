# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on the installed packages, and on the parts of tfplugin that work."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys

import tensorflow as tf

from tfplugin import version
from tfplugin._tf_internals import reached
from tfplugin.compat import keras_choice

_LAST_WITH_ESTIMATOR = '2.15.'
_BESIDE = ('tensorflow-estimator', 'tf-keras', 'keras', 'tensorboard', 'numpy')
# By extra: the feature that needs it, and the packages to look for.
_EXTRAS = {
    'train': ('tfplugin-train and the progress bar',
              ('matplotlib', 'rich', 'tensorboard')),
    'report': ('tfplugin-report', ('plotly',)),
    'horovod': ("engine='horovod'", ('horovod',)),
}


def check() -> None:
  """Prints versions, the Keras in use, devices, and the parts that work.

  A program may call it anywhere, as it loads no package. `python -m tfplugin`
  also loads Estimator and looks up each private name of TensorFlow that
  tfplugin uses.
  """
  sys.stdout.write('\n'.join(lines()) + '\n')


def lines(with_private_names: bool = False) -> list[str]:
  """Returns the lines that `check` prints.

  `with_private_names` loads Estimator and looks up the private names of
  TensorFlow that tfplugin uses.
  """
  low, high = version.MIN_TENSORFLOW, version.MAX_TENSORFLOW
  return [
      f'tfplugin {version.__version__}, Python {platform.python_version()}',
      f'system: {platform.platform()}, {os.cpu_count()} processors',
      f'TensorFlow {tf.__version__} (needed: >= {low}, < {high})',
      *(f'{name} {_version(name)}' for name in _BESIDE),
      f'tf.keras: {_keras()}',
      'devices: ' + ', '.join(
          device.name for device in tf.config.list_physical_devices()),
      f'Estimator: {_estimator()}',
      'TPU embeddings and graceful shutdown of TPUEstimator: ' + (
          'yes' if _is_last() else 'no: TensorFlow 2.16 dropped them'),
      f'tf.summary of TensorFlow 2: {_summaries()}',
      *(f'{what}: {_extra(name, packages)}'
        for name, (what, packages) in _EXTRAS.items()),
      *(['private names of TensorFlow: ' + (
          '; '.join(reached.moved()) or 'all are there')]
        if with_private_names else []),
  ]


def _version(distribution: str) -> str:
  try:
    return importlib.metadata.version(distribution)
  except importlib.metadata.PackageNotFoundError:
    return 'is not installed'


def _is_last() -> bool:
  return tf.__version__.startswith(_LAST_WITH_ESTIMATOR)


def _keras() -> str:
  """Returns the Keras that `tf.keras` is, or will be."""
  if _is_last():
    return 'Keras 2'
  if keras_choice.uses_keras_3():
    return 'Keras 3, in use'
  if not keras_choice.is_wanted():
    value = os.environ[keras_choice.VARIABLE]
    return f'Keras 3, by {keras_choice.VARIABLE}={value}'
  return ('tf-keras, in use' if keras_choice.uses_tf_keras()
          else 'not used yet; tf-keras when Estimator is loaded')


def _estimator() -> str:
  """Returns whether Estimator can be loaded, with the remedy if not."""
  if importlib.util.find_spec('tensorflow_estimator') is None:
    return 'no: `pip install --no-deps tensorflow-estimator==2.15.0`'
  reason = None if _is_last() else keras_choice.reason_against()
  return f'no: {reason}' if reason else 'yes'


def _summaries() -> str:
  is_there = importlib.util.find_spec('tensorboard') is not None
  return 'yes' if is_there else 'no: `pip install tensorboard`'


def _extra(name: str, packages: tuple[str, ...]) -> str:
  """Returns whether an extra's packages are installed, or the remedy."""
  are_there = all(map(importlib.util.find_spec, packages))
  return 'yes' if are_there else f"no: `pip install 'tfplugin[{name}]'`"
