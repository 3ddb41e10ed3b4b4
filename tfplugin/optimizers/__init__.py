# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The five optimizers and the elastic custom getter."""

from tfplugin.optimizers.cross_shard import CrossShardOptimizer
from tfplugin.optimizers.tower import TowerOptimizer

__all__ = (
    'CrossShardOptimizer',
    'TowerOptimizer',
)
