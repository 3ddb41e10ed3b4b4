# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `tf.contrib.estimator` had for several devices of one host."""

from tfplugin.contrib import absent_names
from tfplugin.estimator.replicate import replicate_model_fn
from tfplugin.optimizers.tower import TowerOptimizer

__all__ = (
    'TowerOptimizer',
    'replicate_model_fn',
)

__getattr__ = absent_names.refuse('contrib.estimator', __all__)
