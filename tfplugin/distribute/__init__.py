# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies of tf.distribute, and the contexts and placement of updates."""

from tfplugin.distribute.clipping.variable_clipping_strategy import (
  VariableClippingStrategy,
)
from tfplugin.distribute.elastic.elastic_average_strategy import (
  ElasticAverageStrategy,
)
from tfplugin.distribute.elastic.elastic_settings import ElasticOptions
from tfplugin.distribute.parameter_server_base import (
  PackedParameterServerStrategy,
)
from tfplugin.distribute.shards.cross_shard_strategy import CrossShardStrategy
from tfplugin.distribute.staleness.drop_stale_gradient_strategy import (
  DropStaleGradientStrategy,
)
from tfplugin.distribute.towers.tower_strategy import current_tower
from tfplugin.distribute.towers.tower_strategy import TowerStrategy

__all__ = (
    'CrossShardStrategy',
    'DropStaleGradientStrategy',
    'ElasticAverageStrategy',
    'ElasticOptions',
    'PackedParameterServerStrategy',
    'TowerStrategy',
    'VariableClippingStrategy',
    'current_tower',
)
