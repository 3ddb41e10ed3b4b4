# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorators for an Estimator's model_fn, and what runs around it."""

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


# Loaded when it is asked for: its base class loads tensorflow_estimator, which
# `import tfplugin` is not to wait for.
_LAZY = {
    'ShardedTPUEstimator': 'tfplugin.estimator.sharded_tpu_estimator',
}


def __getattr__(name: str):
  if name not in _LAZY:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return getattr(importlib.import_module(_LAZY[name]), name)
