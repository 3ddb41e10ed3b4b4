# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorators for the model_fn of an Estimator, and cluster training."""

import importlib

from tfplugin.estimator.clip_variables import clip_variables
from tfplugin.estimator.cluster_training import train_and_evaluate
from tfplugin.estimator.cross_shard import cross_shard
from tfplugin.estimator.drop_stale_gradients import drop_stale_gradients
from tfplugin.estimator.elastic_average import elastic_average
from tfplugin.estimator.replicate import replicate_model_fn

__all__ = (
    'ShardedTPUEstimator',
    'clip_variables',
    'cross_shard',
    'drop_stale_gradients',
    'elastic_average',
    'replicate_model_fn',
    'train_and_evaluate',
)


# Loaded on first use: the base class imports tensorflow_estimator, which would
# slow down `import tfplugin`.
_LAZY = {
    'ShardedTPUEstimator': 'tfplugin.estimator.sharded_tpu_estimator',
}


def __getattr__(name: str):
  if name not in _LAZY:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return getattr(importlib.import_module(_LAZY[name]), name)
