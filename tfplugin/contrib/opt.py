# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `tf.contrib.opt` had for distributed training."""

from tfplugin.contrib import absent_names
from tfplugin.optimizers.drop_stale_gradient import DropStaleGradientOptimizer
from tfplugin.optimizers.elastic_average import ElasticAverageOptimizer
from tfplugin.optimizers.elastic_custom_getter import ElasticAverageCustomGetter
from tfplugin.optimizers.variable_clipping import VariableClippingOptimizer

__all__ = (
    'DropStaleGradientOptimizer',
    'ElasticAverageCustomGetter',
    'ElasticAverageOptimizer',
    'VariableClippingOptimizer',
)

__getattr__ = absent_names.refuse('contrib.opt', __all__)
