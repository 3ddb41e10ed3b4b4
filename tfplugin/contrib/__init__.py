# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `tf.contrib`: what was there for training and its input.

A program moves by one changed line:

  from tfplugin import contrib    # was: from tensorflow import contrib

  optimizer = contrib.opt.VariableClippingOptimizer(...)

or by one line more, and none changed, in front of its imports:

  import tfplugin; tfplugin.contrib.install()

Held here are the modules `data`, `distribute`, `estimator`, `opt`, `tpu` and
`training`. Of tfplugin itself: in `contrib.opt` drop-stale, elastic averaging
and its getter, and variable clipping; in `contrib.estimator` TowerOptimizer and
replicate_model_fn; in `contrib.tpu` CrossShardOptimizer and cross_replica_sum.
Their arguments keep their meaning and defaults; what was wrong is corrected, as
each class says under "Differences from tf.contrib".

Every other name that TensorFlow 2.15 still has, wherever it is now, is that
object of TensorFlow. A name that is nowhere any more raises an AttributeError
that says what to do instead. docs/contrib_names.md lists all of them.

Example:
  >>> from tfplugin import contrib
  >>> contrib.opt.ElasticAverageOptimizer.BETA
  0.9
"""

from tfplugin.contrib import data
from tfplugin.contrib import distribute
from tfplugin.contrib import estimator
from tfplugin.contrib import opt
from tfplugin.contrib import tpu
from tfplugin.contrib import training
from tfplugin.contrib.installation import install

__all__ = (
    'data',
    'distribute',
    'estimator',
    'install',
    'opt',
    'tpu',
    'training',
)


def __getattr__(name: str):
  message = f'tfplugin has no `contrib.{name}`. It holds ' + ', '.join(
      f'contrib.{held}' for held in __all__ if held != 'install')
  if not name.startswith('__'):
    message += ('. What else was in `tf.contrib` ended with TensorFlow 1.15; '
                'see its migration guide.')
  raise AttributeError(message)
