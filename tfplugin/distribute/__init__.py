# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where and when a rule runs: contexts, placement, tf.distribute strategies."""

from tfplugin.distribute.cross_shard_strategy import CrossShardStrategy
from tfplugin.distribute.drop_stale_gradient_strategy import (
  DropStaleGradientStrategy,
)
from tfplugin.distribute.elastic_average_strategy import ElasticAverageStrategy
from tfplugin.distribute.tower_index import current_tower
from tfplugin.distribute.tower_strategy import TowerStrategy
from tfplugin.distribute.variable_clipping_strategy import (
  VariableClippingStrategy,
)

__all__ = (
    'CrossShardStrategy',
    'DropStaleGradientStrategy',
    'ElasticAverageStrategy',
    'TowerStrategy',
    'VariableClippingStrategy',
    'current_tower',
)
