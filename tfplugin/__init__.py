# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Distributed-training wrappers for TensorFlow Estimator.

A name, or a package such as `tfplugin.distribute`, is loaded on first use.
"""

import importlib
import typing

from tfplugin import _program_logging  # noqa: F401 (before TensorFlow)
from tfplugin import _version_gate  # noqa: F401 (importing it is the check)
from tfplugin.compat import estimator_names
from tfplugin.version import __version__

if typing.TYPE_CHECKING:
  from tfplugin import checkpoints  # noqa: F401 (as tfplugin.checkpoints)
  from tfplugin import compat  # noqa: F401 (as tfplugin.compat)
  from tfplugin import contrib  # noqa: F401 (as tfplugin.contrib)
  from tfplugin import distribute  # noqa: F401 (as tfplugin.distribute)
  from tfplugin import estimator  # noqa: F401 (as tfplugin.estimator)
  from tfplugin import events  # noqa: F401 (as tfplugin.events)
  from tfplugin import hooks  # noqa: F401 (as tfplugin.hooks)
  from tfplugin import ops  # noqa: F401 (as tfplugin.ops)
  from tfplugin import optimizers  # noqa: F401 (as tfplugin.optimizers)
  from tfplugin import types  # noqa: F401 (as tfplugin.types)
  from tfplugin.compat.report import check
  from tfplugin.distribute.shards.current_shards import cross_replica_sum
  from tfplugin.estimator.replicate import replicate_model_fn
  from tfplugin.optimizers.cross_shard import CrossShardOptimizer
  from tfplugin.optimizers.drop_stale_gradient import DropStaleGradientOptimizer
  from tfplugin.optimizers.elastic_average import ElasticAverageOptimizer
  from tfplugin.optimizers.elastic_custom_getter import (
    ElasticAverageCustomGetter,
  )
  from tfplugin.optimizers.tower import TowerOptimizer
  from tfplugin.optimizers.variable_clipping import VariableClippingOptimizer

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

# The modules of the names above.
_MODULES = {
    'CrossShardOptimizer': 'tfplugin.optimizers.cross_shard',
    'DropStaleGradientOptimizer': 'tfplugin.optimizers.drop_stale_gradient',
    'ElasticAverageCustomGetter': 'tfplugin.optimizers.elastic_custom_getter',
    'ElasticAverageOptimizer': 'tfplugin.optimizers.elastic_average',
    'TowerOptimizer': 'tfplugin.optimizers.tower',
    'VariableClippingOptimizer': 'tfplugin.optimizers.variable_clipping',
    'check': 'tfplugin.compat.report',
    'cross_replica_sum': 'tfplugin.distribute.shards.current_shards',
    'replicate_model_fn': 'tfplugin.estimator.replicate',
}
# `import tfplugin` is enough to use them.
_PACKAGES = ('checkpoints', 'compat', 'contrib', 'distribute', 'estimator',
             'events', 'hooks', 'ops', 'optimizers', 'types')
# Likewise; the core, also as a type checker reads it, is without them.
_TOOLS = ('report', 'testing')


if not typing.TYPE_CHECKING:  # A checker finds a wrong name without it.
  def __getattr__(name: str):
    if name in _MODULES:
      return getattr(importlib.import_module(_MODULES[name]), name)
    if name in (*_PACKAGES, *_TOOLS):
      return importlib.import_module(f'tfplugin.{name}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__, *_PACKAGES, *_TOOLS})


estimator_names.restore()
