# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports of the five optimizers and the elastic custom getter."""

from tfplugin.optimizers.cross_shard import CrossShardOptimizer
from tfplugin.optimizers.drop_stale_gradient import DropStaleGradientOptimizer
from tfplugin.optimizers.elastic_average import ElasticAverageOptimizer
from tfplugin.optimizers.elastic_custom_getter import ElasticAverageCustomGetter
from tfplugin.optimizers.tower import TowerOptimizer
from tfplugin.optimizers.variable_clipping import VariableClippingOptimizer

__all__ = (
    'CrossShardOptimizer',
    'DropStaleGradientOptimizer',
    'ElasticAverageCustomGetter',
    'ElasticAverageOptimizer',
    'TowerOptimizer',
    'VariableClippingOptimizer',
)
