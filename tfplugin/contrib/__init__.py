# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `tf.contrib`: the distributed-training names of it.

A program moves by one changed line:

  from tfplugin import contrib    # was: from tensorflow import contrib

  optimizer = contrib.opt.VariableClippingOptimizer(...)

Held here are `contrib.opt` (drop-stale, elastic averaging and its getter,
variable clipping), `contrib.estimator` (TowerOptimizer, replicate_model_fn) and
`contrib.tpu` (CrossShardOptimizer, cross_replica_sum). Arguments keep their
meaning and defaults; what was wrong is corrected, as each class says under
"Differences from tf.contrib". Any other name raises an AttributeError that
lists what is held.

Example:
  >>> from tfplugin import contrib
  >>> contrib.opt.ElasticAverageOptimizer.BETA
  0.9
"""

from tfplugin.contrib import absent_names
from tfplugin.contrib import estimator
from tfplugin.contrib import opt
from tfplugin.contrib import tpu

__all__ = (
    'estimator',
    'opt',
    'tpu',
)

__getattr__ = absent_names.refuse('contrib', __all__)
