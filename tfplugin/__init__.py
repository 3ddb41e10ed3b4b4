# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Distributed-training wrappers for TensorFlow Estimator."""

from tfplugin import _program_logging  # noqa: F401 (before TensorFlow)
from tfplugin import _version_gate  # noqa: F401 (importing it is the check)
from tfplugin import contrib  # noqa: F401 (as tfplugin.contrib)
from tfplugin.compat import estimator_names
from tfplugin.compat.report import check
from tfplugin.distribute.shards.cross_replica import cross_replica_sum
from tfplugin.estimator.replicate import replicate_model_fn
from tfplugin.optimizers.cross_shard import CrossShardOptimizer
from tfplugin.optimizers.drop_stale_gradient import DropStaleGradientOptimizer
from tfplugin.optimizers.elastic_average import ElasticAverageOptimizer
from tfplugin.optimizers.elastic_custom_getter import ElasticAverageCustomGetter
from tfplugin.optimizers.tower import TowerOptimizer
from tfplugin.optimizers.variable_clipping import VariableClippingOptimizer
from tfplugin.version import __version__

__all__ = (
    'CrossShardOptimizer',
    'DropStaleGradientOptimizer',
    'ElasticAverageCustomGetter',
    'ElasticAverageOptimizer',
    'TowerOptimizer',
    'VariableClippingOptimizer',
    '__version__',
    'check',
    'cross_replica_sum',
    'replicate_model_fn',
)

estimator_names.restore()
