# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `tf.contrib.tpu` had for reducing over shards."""

from tfplugin.contrib import absent_names
from tfplugin.distribute.shards.cross_replica import cross_replica_sum
from tfplugin.optimizers.cross_shard import CrossShardOptimizer

__all__ = (
    'CrossShardOptimizer',
    'cross_replica_sum',
)

__getattr__ = absent_names.refuse('contrib.tpu', __all__)
