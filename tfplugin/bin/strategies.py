# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the strategy of the main job, and reads what it does.

Nothing of this is in the model, whose optimizer is a plain one: the strategy
comes in through `RunConfig(train_distribute=...)` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import distribute
from tfplugin.bin import options as options_lib
from tfplugin.ops import elastic

tf1 = tf.compat.v1

# What leads into one unit, or the vector of one word.
CLIP_RULES = {
    'mlp': {r'/kernel': 0},
    'cnn': {r'^convolution\d/kernel': (0, 1, 2), r'^logits/kernel': 0},
    'embedding': {r'^(embedding|context)': 1},
}
# Norms of clipped rows differ from the bound by rounding.
_ROUNDING = 1e-5


def make_strategy(options: options_lib.TrainOptions
                 ) -> Optional[tf.distribute.Strategy]:
  """Returns what `train_distribute` of this run is; None for no strategy.

  In a cluster call it with this process's TF_CONFIG in the environment.

  Args:
    options: The settings of the run.
  """
  if options.wrapper == 'cross_shard':
    # It makes the shards that the wrapper reduces over. Other ways to reduce
    # can hang on the CPUs of a small machine.
    return tf.distribute.MirroredStrategy(
        _devices(options),
        cross_device_ops=tf.distribute.ReductionToOneDevice())
  make = _STRATEGIES.get(options.strategy)
  return make(options) if make else None


def figures(options: options_lib.TrainOptions) -> dict[str, tf.Tensor]:
  """Returns scalar tensors that say what the strategy does, by name.

  Args:
    options: The settings of the run.
  """
  variables = tf1.trainable_variables()
  if options.strategy == 'elastic_average':
    return {'elastic distance': elastic.distance(
        [v.value() for v in variables],
        [v.center.read_value() for v in variables])}
  if options.strategy == 'variable_clipping':
    return {'fraction of rows at the bound': _fraction_at_bound(options)}
  return {}


def counts(options: options_lib.TrainOptions
          ) -> dict[str, Callable[[], tf.Tensor]]:
  """Returns functions that find tensors whose sum over the processes counts.

  The strategy makes them after the model: call them when the graph is whole.

  Args:
    options: The settings of the run.
  """
  if options.strategy != 'drop_stale':
    return {}
  return {name: lambda name=name: _local_value(f'stale_gradients/num_{name}')
          for name in ('dropped', 'applied')}


def _devices(options: options_lib.TrainOptions) -> list[str]:
  return [f'/cpu:{i}' for i in range(options.devices)]


def _elastic_average(options):
  return distribute.ElasticAverageStrategy(
      num_worker=options.workers + 1,
      communication_period=options.communication_period,
      moving_rate=options.moving_rate,
      rho=options.rho,
      synchronous=options.synchronous,
      # `steps` then means the same as with the other strategies.
      count_steps='local')


def _variable_clipping(options):
  return distribute.VariableClippingStrategy(
      tf1.distribute.experimental.ParameterServerStrategy(),
      CLIP_RULES[options.model], options.max_norm)


_STRATEGIES = {
    'elastic_average': _elastic_average,
    'drop_stale': lambda options: distribute.DropStaleGradientStrategy(
        staleness=options.staleness),
    'variable_clipping': _variable_clipping,
    'tower': lambda options: distribute.TowerStrategy(_devices(options)),
    'cross_shard': lambda options: distribute.CrossShardStrategy(
        _devices(options)),
}


def _fraction_at_bound(options: options_lib.TrainOptions) -> tf.Tensor:
  """Returns the share of the clipped slices whose norm is the bound."""
  norms = []
  for variable in tf1.trainable_variables():
    rank = len(variable.shape)
    if rank > 1:
      axes = [1] if options.model == 'embedding' else list(range(rank - 1))
      norms.append(tf.sqrt(tf.reduce_sum(variable.read_value()**2, axes)))
  at_bound = tf.concat(norms, 0) >= options.max_norm * (1 - _ROUNDING)
  return tf.reduce_mean(tf.cast(at_bound, tf.float32))


def _local_value(name: str) -> tf.Tensor:
  value, = (v.value() for v in tf1.local_variables() if v.op.name == name)
  return value
