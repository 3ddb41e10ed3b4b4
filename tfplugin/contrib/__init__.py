# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the parts of `tf.contrib` for training and its input.

A program of TensorFlow 1.15 puts three lines in the place of its old imports:

  import tensorflow.compat.v1 as tf
  tf.disable_v2_behavior()
  from tfplugin import contrib    # was: from tensorflow import contrib

  optimizer = contrib.opt.VariableClippingOptimizer(...)

A program that uses `tf.contrib`, or imports its modules, keeps these uses. Its
third line is

  import tfplugin; tfplugin.contrib.install()

The modules are `data`, `distribute`, `estimator`, `opt`, `tpu` and `training`.
Names of tfplugin itself: in `contrib.opt` drop-stale, elastic averaging and its
getter, and variable clipping; in `contrib.estimator` TowerOptimizer and
replicate_model_fn; in `contrib.tpu` CrossShardOptimizer and cross_replica_sum.
Their arguments keep their meaning and defaults. Each class lists its
corrections under "Differences from tf.contrib".

Every other name that TensorFlow 2.15 still has, under any path, is TensorFlow's
object. A name that no longer exists raises an AttributeError with its
replacement. docs/contrib_names.md lists all names.

Example:
  >>> from tfplugin import contrib
  >>> contrib.opt.ElasticAverageOptimizer.BETA
  0.9
"""

import importlib
import typing

from tfplugin.compat import module_aliases

if typing.TYPE_CHECKING:
  from tfplugin.contrib import data
  from tfplugin.contrib import distribute
  from tfplugin.contrib import estimator
  from tfplugin.contrib import opt
  from tfplugin.contrib import tpu
  from tfplugin.contrib import training

__all__ = (
    'data',
    'distribute',
    'estimator',
    'install',
    'opt',
    'tpu',
    'training',
)


_TF_SLIM = ('the package tf-slim has it (pip install tf-slim, import tf_slim); '
            'docs/start/move_from_contrib.md has a table of the functions')
_ELSEWHERE = {
    'cluster_resolver': 'it is `tf.compat.v1.distribute.cluster_resolver` now',
    'framework': f'`tf.compat.v1.train` has the global step; {_TF_SLIM}',
    'layers': f'`tf.compat.v1.layers` is near to it; or {_TF_SLIM}',
    'lookup': '`tf.compat.v1.lookup` is near to it',
    'metrics': '`tf.compat.v1.metrics` is near to it',
    'rnn': '`tf.compat.v1.nn.rnn_cell` and `tf.compat.v1.nn` are near to it',
    'slim': _TF_SLIM,
    'summary': '`tf.compat.v2.summary` is near to it',
}


def install() -> None:
  """Makes `tf.contrib` and `import tensorflow.contrib` be `tfplugin.contrib`.

  A program of TensorFlow 1.15 then keeps its imports and uses of the modules
  that `tfplugin.contrib` has. It begins with

    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    import tfplugin; tfplugin.contrib.install()

  It may be called again; an existing `tf.contrib` stays.

  Example:
    >>> import tensorflow.compat.v1 as tf
    >>> import tfplugin
    >>> tfplugin.contrib.install()
    >>> tf.contrib.opt.ElasticAverageOptimizer.BETA
    0.9
  """
  if hasattr(importlib.import_module('tensorflow'), 'contrib'):
    return
  module_aliases.AliasFinder(module_aliases.CONTRIB_ALIASES).install()
  for api in module_aliases.APIS:
    importlib.import_module(f'{api}.contrib')


def __getattr__(name: str):
  if name in __all__:  # A module is loaded on first use.
    return importlib.import_module(f'{__name__}.{name}')
  message = f'tfplugin has no `contrib.{name}`. It holds ' + ', '.join(
      f'contrib.{held}' for held in __all__ if held != 'install')
  if not name.startswith('__'):
    instead = _ELSEWHERE.get(name, 'TensorFlow says what replaces it: '
                             'https://www.tensorflow.org/guide/migrate')
    message += f'. `tf.contrib.{name}` ended with TensorFlow 1.15: {instead}.'
  raise AttributeError(message)


def __dir__() -> list[str]:
  return list(__all__)
