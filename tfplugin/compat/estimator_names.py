# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names by which programs import Estimator, and Estimator its modules.

Estimator is loaded at the first use of a name, after the choice of Keras. From
then on it refuses Keras 3 in a model_fn: its variables cannot be restored.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any
from typing import Callable

import tensorflow as tf
from tensorflow.python.util import tf_export

from tfplugin import _tf_internals
from tfplugin.compat import keras_choice
from tfplugin.compat import module_aliases

_API_NAME = 'estimator'
_API = 'tensorflow_estimator.python.estimator.api'
_ESTIMATOR = 'tensorflow_estimator.python.estimator'
# TensorFlow has each API twice: as `tf.compat.v1`, and as
# `tensorflow.compat.v1` after an import of that name. Both contain `compat`
# again, for programs that import one of them as `tf`.
_PACKAGES = [f'{package}.{version}'
             for package in ('tensorflow._api.v2.compat', 'tensorflow.compat')
             for version in ('v1', 'v2')]
_APIS = {
    'tensorflow': '_v2',
    **{name: f'_{name[-2:]}' for package in _PACKAGES for name in (
        package, f'{package}.compat.v1', f'{package}.compat.v2')},
}
# Of the modules that Estimator lacks, this is the first one that it imports,
_TRAINING = 'tensorflow.python.distribute.estimator_training'
# and this the last one, after its class Estimator.
_EMBEDDING = 'tensorflow.python.tpu.tpu_embedding'

ALIASES = {
    **{f'{module}.estimator': f'{_API}.{api}.estimator'
       for module, api in _APIS.items()},
    # Aliases of TensorFlow 2.15 for programs that import private modules.
    'tensorflow.python.estimator': _ESTIMATOR,
    'tensorflow.python.estimator.keras': f'{_ESTIMATOR}.keras_lib',
    # Modules that Estimator imports.
    _TRAINING: 'tfplugin.compat.estimator_training',
    **dict.fromkeys(
        ('tensorflow.python.tpu.session_support', _EMBEDDING,
         f'{_EMBEDDING}_gradient'), 'tfplugin.compat.tpu_modules'),
}
# `tf.keras` has this name with Keras 2 only; it holds `model_to_estimator`.
KERAS_ALIASES = {
    f'{module}.keras.estimator': f'tf_keras.api.{api}.keras.estimator'
    for module, api in _APIS.items()}
# The module behind `tf.keras` if it is Keras 3.
_KERAS_3 = 'keras._tf_keras.keras'
# The module of its classes, in every TensorFlow without Estimator.
_KERAS_3_SOURCE = 'keras.src.'
_REMEDY = (
    'Use `tf.keras` with tf-keras (`pip install tf-keras`, and no '
    'TF_USE_LEGACY_KERAS=0)')
_KERAS_3_VARIABLE = (
    'A model_fn must not use Keras 3, whose variables are named anew in every '
    'graph: a checkpoint would not be found again. Received: a variable {name} '
    f'of Keras 3. {_REMEDY}, or `tf.compat.v1.get_variable`.')
_KERAS_3_MODEL = (
    '`keras_model` must be a model of Keras 2. Received: {model!r} of Keras 3. '
    f'{_REMEDY}.')


def restore() -> None:
  """Makes Estimator importable by all of its names, if TensorFlow lacks it."""
  if hasattr(tf, 'estimator'):
    return
  module_aliases.AliasFinder({**ALIASES, **KERAS_ALIASES}, {
      _TRAINING: _prepare,
      _EMBEDDING: _refuse_keras_3,
      **dict.fromkeys(KERAS_ALIASES, keras_choice.choose_for_models),
  }).install()
  for name in _APIS:
    module, alias = importlib.import_module(name), f'{name}.estimator'
    module.estimator = module_aliases.LazyPackage(alias, ALIASES[alias])
    _restore_in_keras(vars(vars(module)['keras']), name)
  keras_choice.exempt_from_autograph()
  keras_choice.let_version_be_asked()
  # TensorFlow replaces `tf.keras` by this module at its first use.
  if _KERAS_3 in sys.modules:
    _restore_in_keras(vars(sys.modules[_KERAS_3]), 'tensorflow')


def _restore_in_keras(names: dict, api: str) -> None:
  """Adds `estimator` to the names of a lazy `tf.keras`; loads no Keras."""
  alias = f'{api}.keras.estimator'
  names.setdefault('estimator', module_aliases.LazyPackage(
      alias, KERAS_ALIASES[alias], keras_choice.choose_for_models))


def _prepare() -> None:
  """Chooses Keras and adds the entries that Estimator expects; repeatable."""
  keras_choice.choose()
  _add_api_name()


def _add_api_name() -> None:
  """Adds the rows by which Estimator's classes declare their public names."""
  if hasattr(tf_export, 'ESTIMATOR_API_NAME'):
    return
  tf_export.ESTIMATOR_API_NAME = _API_NAME
  tf_export.SUBPACKAGE_NAMESPACES.append(_API_NAME)
  row = type(tf_export.API_ATTRS[tf_export.TENSORFLOW_API_NAME])
  for table, suffix in ((tf_export.API_ATTRS, ''),
                        (tf_export.API_ATTRS_V1, '_v1')):
    table[_API_NAME] = row(f'_{_API_NAME}_api_names{suffix}',
                           f'_{_API_NAME}_api_constants{suffix}')


def _refuse_keras_3() -> None:
  """Makes model_fns and Keras models of a loaded Estimator refuse Keras 3."""
  estimator = importlib.import_module(f'{_ESTIMATOR}.estimator').Estimator
  keras_lib = importlib.import_module(f'{_ESTIMATOR}.keras_lib')

  def calling(call: Callable) -> Callable:
    def call_with_refusal(*args: Any, **kwargs: Any) -> Any:
      with tf.variable_creator_scope(_refuse_variable):
        return call(*args, **kwargs)
    return call_with_refusal

  def checking(check: Callable) -> Callable:
    def check_with_refusal(model: Any, *args: Any, **kwargs: Any) -> None:
      if any(base.__module__.startswith(_KERAS_3_SOURCE)
             for base in type(model).__mro__):
        raise TypeError(_KERAS_3_MODEL.format(model=model))
      check(model, *args, **kwargs)
    return check_with_refusal

  _tf_internals.stay_replaced(estimator, _call_model_fn=calling)
  _tf_internals.stay_replaced(keras_lib, _assert_valid_model=checking)


def _refuse_variable(next_creator: Any, **kwargs: Any) -> tf.Variable:
  """Creates a variable; raises ValueError if Keras 3 asks for it."""
  if _tf_internals.is_asked_by_keras_3():
    raise ValueError(_KERAS_3_VARIABLE.format(name=repr(kwargs.get('name'))))
  return next_creator(**kwargs)
