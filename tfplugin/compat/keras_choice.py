# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Choice of the Keras behind `tf.keras` when Estimator is loaded.

Estimator needs Keras 2, which is now the distribution tf-keras. TensorFlow
chooses by an environment variable. It reads the variable at the first use of
`tf.keras`, and for `import tensorflow.keras` when TensorFlow is imported.
AutoGraph treats both as Keras.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import sys
import types
from collections.abc import Iterator

from tensorflow.python.autograph.core import config
from tensorflow.python.util import lazy_loader

VARIABLE = 'TF_USE_LEGACY_KERAS'
_YES = ('1', 'True', 'true')
_QUESTION = 'version'

NOT_INSTALLED = (
    'Estimator needs Keras 2, the distribution tf-keras. Received: {keras} '
    'alone. Install it with `pip install "tf-keras=={version}.*"`. With '
    f'{VARIABLE}=0 in the environment Estimator runs without, and no model_fn '
    'may use Keras.')
TOO_LATE = (
    'Estimator needs Keras 2, and this process has used `tf.keras` as Keras 3 '
    'already. Received: {keras}. `pip install tf-keras`, and set '
    f'{VARIABLE}=1 before TensorFlow is imported, or use `tf.estimator` before '
    f'`tf.keras`. With {VARIABLE}=0 Estimator runs beside Keras 3, and no '
    'model_fn may use Keras.')


def let_version_be_asked() -> None:
  """Makes `tf.keras.version()` callable without a choice of Keras.

  tensorflow-probability and tensorflow-hub call it when they are imported. They
  import tf-keras themselves if the answer is a version of Keras 3.
  """
  for loader in _loaders():
    if not loader._tfll_initialized:
      vars(loader)[_QUESTION] = functools.partial(_answer, loader)


def _answer(loader: lazy_loader.KerasLazyLoader) -> str:
  """Returns the version of `tf.keras`, without using it before a choice."""
  if VARIABLE in os.environ:
    vars(loader).pop(_QUESTION)
    return getattr(loader, _QUESTION)()
  return importlib.import_module('keras').__version__


def choose() -> None:
  """Makes `tf.keras` tf-keras, unless the user has decided otherwise.

  Raises ImportError if `tf.keras` is Keras 3 already, or tf-keras is missing.
  """
  if not is_wanted():
    return
  reason = reason_against()
  if reason:
    raise ImportError(reason)
  logging.getLogger('tensorflow').info(
      'Estimator is loaded: `tf.keras` is tf-keras from now on.')
  with _variable_set():
    for loader in _loaders():
      if not loader._tfll_initialized:
        vars(loader).pop(_QUESTION, None)  # tf-keras has no such function.
        loader._initialize()
  for package in _packages():
    package.__path__ = [_of_tf_keras(entry) for entry in package.__path__]


def choose_for_models() -> None:
  """Chooses like `choose`, but requires tf-keras even if Keras 3 was chosen."""
  choose()
  if not _is_installed():
    raise ImportError(_not_installed())


def is_wanted() -> bool:
  """Returns whether the user asked for tf-keras or left the choice open."""
  return os.environ.get(VARIABLE, '1') in _YES


def reason_against() -> str | None:
  """Returns why `choose` would raise, with the remedy, or None."""
  if is_wanted() and uses_keras_3():
    return TOO_LATE.format(keras=_keras_here())
  if is_wanted() and not _is_installed():
    return _not_installed()
  return None


def uses_tf_keras() -> bool:
  """Returns whether `tf.keras` is tf-keras already."""
  return _is_in_use('tf_keras', 'tf_keras')


def uses_keras_3() -> bool:
  """Returns whether `tf.keras` has been used while it was Keras 3."""
  return _is_in_use('keras', 'keras_3')


def exempt_from_autograph() -> None:
  """Makes AutoGraph skip tf-keras, as it skips Keras; may be repeated.

  A converted assignment reads a distributed variable in another context, and so
  another copy of it. `Model.evaluate` under ElasticAverageStrategy would then
  not evaluate the centre.
  """
  rule = config.DoNotConvert('tf_keras')
  if str(rule) not in map(str, config.CONVERSION_RULES):
    config.CONVERSION_RULES += (rule,)


def _keras_here() -> str:
  return f'Keras {importlib.import_module("keras").__version__}'


def _is_installed() -> bool:
  """Returns whether tf-keras is installed."""
  return importlib.util.find_spec('tf_keras') is not None


def _not_installed() -> str:
  version = importlib.import_module('tensorflow').__version__
  return NOT_INSTALLED.format(
      keras=_keras_here(), version=version.rpartition('.')[0])


def _is_in_use(package: str, version: str) -> bool:
  """Returns whether a part of TensorFlow uses the Keras in `package`.

  Either a lazy loader reports `version`, or the loader was replaced by a module
  of that package. `tensorflow.keras` is a module that `import` makes from the
  files of `tf.keras`.
  """
  if any(loader._tfll_initialized and loader._tfll_keras_version == version
         for loader in _loaders()):
    return True
  spec = importlib.util.find_spec(package)
  folder = spec and os.path.dirname(spec.origin) + os.sep
  parts = [part for api in _packages() for part in vars(api).values()
           if isinstance(part, types.ModuleType)
           and not isinstance(part, lazy_loader.KerasLazyLoader)]
  files = [vars(part).get('__file__') or ''
           for part in (*parts, sys.modules.get('tensorflow.keras')) if part]
  return bool(spec) and any(file.startswith(folder) for file in files)


@contextlib.contextmanager
def _variable_set() -> Iterator[None]:
  """Sets the variable for a while; other processes inherit the old value."""
  before = os.environ.get(VARIABLE)
  os.environ[VARIABLE] = '1'
  try:
    yield
  finally:
    if before is None:
      os.environ.pop(VARIABLE, None)
    else:
      os.environ[VARIABLE] = before


def _packages() -> list[types.ModuleType]:
  """Returns the packages of TensorFlow that hold parts of Keras."""
  apis = [module for name, module in sorted(sys.modules.items())
          if name == 'tensorflow' or name.startswith('tensorflow')
          and name.endswith(('compat.v1', 'compat.v2'))]
  return [*apis, *(api.nn for api in apis)]


def _loaders() -> list[lazy_loader.KerasLazyLoader]:
  """Returns the loaders in the packages that stand for a Keras not used yet."""
  return [value for package in _packages()
          for value in list(vars(package).values())
          if isinstance(value, lazy_loader.KerasLazyLoader)]


def _of_tf_keras(entry: str) -> str:
  """Returns the tf-keras directory that replaces a `__path__` entry."""
  keras, tf_keras = (os.path.join(os.path.dirname(
      importlib.util.find_spec(name).origin), 'api')
                     for name in ('keras', 'tf_keras'))
  return (tf_keras + entry[len(keras):] if entry.startswith(keras + os.sep)
          else entry)
