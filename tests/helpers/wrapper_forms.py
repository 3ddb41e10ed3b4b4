# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every wrapper around a small program, as a decorator and as a strategy.

The clips bound nothing, and no gradient is stale: a step is the optimizer's
own, and a batch of two rows is split over two devices.
"""

import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator as estimator_lib

tf1 = tf.compat.v1

MOVING_RATE = 0.25
_DEVICES = ['/cpu:0', '/cpu:1']
_ELASTIC = {'communication_period': 1, 'moving_rate': MOVING_RATE,
            'count_steps': 'local'}
_CLIP = {'rules': {'.*': []}, 'max_norm': 1e6}

DECORATORS = {
    'elastic': estimator_lib.elastic_average(**_ELASTIC),
    'drop_stale': estimator_lib.drop_stale_gradients(staleness=10),
    'clip': estimator_lib.clip_variables(**_CLIP),
    'towers': estimator_lib.replicate_model_fn(devices=_DEVICES),
    'cross_shard': estimator_lib.cross_shard(devices=_DEVICES),
}
STRATEGIES = {
    'elastic_strategy': lambda: distribute.ElasticAverageStrategy(**_ELASTIC),
    'elastic_devices': lambda: distribute.ElasticAverageStrategy(
        devices=_DEVICES, **_ELASTIC),
    'drop_stale_strategy': lambda: distribute.DropStaleGradientStrategy(
        staleness=10),
    'packed_strategy': distribute.PackedParameterServerStrategy,
    'clip_mirrored': lambda: _clipping(
        tf1.distribute.MirroredStrategy(['/cpu:0'])),
    'clip_drop_stale': lambda: _clipping(
        distribute.DropStaleGradientStrategy(staleness=10)),
    'tower_strategy': lambda: distribute.TowerStrategy(_DEVICES),
    'one_shard': lambda: distribute.CrossShardStrategy(_DEVICES[:1]),
    'cross_shard_strategy': lambda: distribute.CrossShardStrategy(_DEVICES),
    'clip_cross_shard': lambda: _clipping(
        distribute.CrossShardStrategy(_DEVICES)),
}
FORMS = [*DECORATORS, *STRATEGIES]
# Those that take two batches in a step.
OF_TWO_BATCHES = ['elastic_devices', 'tower_strategy', 'cross_shard_strategy',
                  'clip_cross_shard']


def _clipping(base):
  return distribute.VariableClippingStrategy(base, **_CLIP)


def estimator(form, model_fn, model_dir, warm_start_from=None, **config):
  """Returns an Estimator whose model_fn or configuration has the wrapper."""
  return tf1.estimator.Estimator(
      DECORATORS.get(form, lambda fn: fn)(model_fn),
      warm_start_from=warm_start_from, config=tf1.estimator.RunConfig(
          str(model_dir), train_distribute=STRATEGIES[form]()
          if form in STRATEGIES else None, log_step_count_steps=None,
          save_summary_steps=None, **config))


def input_fn(batches=None):
  """Returns an input_fn of batches with the rows 1 and 1."""
  return lambda: tf.data.Dataset.from_tensors(
      ([[1.0], [1.0]], [[0.0], [0.0]])).repeat(batches)


def minimize(loss, rate=0.0):
  """Returns the train op of gradient descent."""
  return tf1.train.GradientDescentOptimizer(rate).minimize(
      loss, tf1.train.get_global_step())
