# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names by which programs import Estimator, and Estimator its modules.

Estimator is loaded at the first use of a name, after the choice of Keras.
"""

from __future__ import annotations

import importlib
import sys

import tensorflow as tf
from tensorflow.python.util import tf_export

from tfplugin.compat import keras_choice
from tfplugin.compat import keras_refusals
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
    'tensorflow.python.tpu.session_support': 'tfplugin.compat.session_support',
    _EMBEDDING: 'tfplugin.compat.tpu_embedding',
    f'{_EMBEDDING}_gradient': 'tfplugin.compat.tpu_embedding',
}
# `tf.keras` has this name with Keras 2 only; it holds `model_to_estimator`.
KERAS_ALIASES = {
    f'{module}.keras.estimator': f'tf_keras.api.{api}.keras.estimator'
    for module, api in _APIS.items()}
# The module behind `tf.keras` if it is Keras 3.
_KERAS_3 = 'keras._tf_keras.keras'


def restore() -> None:
  """Makes Estimator importable by all of its names, without loading it.

  Does nothing if TensorFlow contains Estimator.
  """
  if hasattr(tf, 'estimator'):
    return
  module_aliases.AliasFinder({**ALIASES, **KERAS_ALIASES}, {
      _TRAINING: _prepare,
      _EMBEDDING: keras_refusals.install,
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
  """Adds `estimator` to the names of a `tf.keras` without using `tf.keras`.

  `names` is the namespace of TensorFlow's lazy `tf.keras`: reading a missing
  name there would load Keras. `api` is the name of the module with that
  `tf.keras`.
  """
  alias = f'{api}.keras.estimator'
  names.setdefault('estimator', module_aliases.LazyPackage(
      alias, KERAS_ALIASES[alias], keras_choice.choose_for_models))


def _prepare() -> None:
  """Chooses Keras and adds the entries that Estimator expects; may be repeated.

  Raises ImportError if Estimator cannot run with the Keras of this process.
  """
  keras_choice.choose()
  _add_api_name()


def _add_api_name() -> None:
  """Adds the rows that Estimator's classes use to declare their public names.

  The rows belong to TensorFlow's own tables, and no function extends these.
  """
  if hasattr(tf_export, 'ESTIMATOR_API_NAME'):
    return
  tf_export.ESTIMATOR_API_NAME = _API_NAME
  tf_export.SUBPACKAGE_NAMESPACES.append(_API_NAME)
  row = type(tf_export.API_ATTRS[tf_export.TENSORFLOW_API_NAME])
  for table, suffix in ((tf_export.API_ATTRS, ''),
                        (tf_export.API_ATTRS_V1, '_v1')):
    table[_API_NAME] = row(f'_{_API_NAME}_api_names{suffix}',
                           f'_{_API_NAME}_api_constants{suffix}')
