# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Forms of all wrappers for small programs that train in one process."""

import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator as estimator_lib

tf1 = tf.compat.v1

_DEVICES = ['/cpu:0', '/cpu:1']
_ELASTIC = {'communication_period': 1, 'moving_rate': 0.25,
            'count_steps': 'local'}
_RULES = {'rules': {'.*': []}, 'max_norm': 1e6}

DECORATORS = {
    'elastic': estimator_lib.elastic_average(**_ELASTIC),
    'drop_stale': estimator_lib.drop_stale_gradients(staleness=10),
    'clip': estimator_lib.clip_variables(**_RULES),
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
}
FORMS = [*DECORATORS, *STRATEGIES]


def _clipping(base):
  return distribute.VariableClippingStrategy(base, {'.*': []}, 1e6)


def estimator(form, model_fn, model_dir, warm_start_from=None, **config):
  """Returns an Estimator whose model_fn or configuration has the wrapper."""
  return tf1.estimator.Estimator(
      DECORATORS.get(form, lambda fn: fn)(model_fn),
      warm_start_from=warm_start_from, config=tf1.estimator.RunConfig(
          str(model_dir), train_distribute=STRATEGIES[form]()
          if form in STRATEGIES else None, log_step_count_steps=None,
          save_summary_steps=None, **config))
