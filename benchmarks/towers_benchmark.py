# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training steps of towers beside those of TensorFlow's local strategies.

  python -m benchmarks.towers_benchmark

Two logical CPUs of one host, an MLP 784-256-256-10 and a small CNN, a batch of
256 rows in all. Ratios of one run count, not times: methods take turns, round
by round, and the median round of each counts. Prints the figures as JSON.
"""

from __future__ import annotations

import json
import statistics
import time

import numpy as np
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1

_DEVICES = ('/cpu:0', '/cpu:1')
_ROWS = 256
_STEPS, _ROUNDS = 10, 9


def _mlp(x):
  x = tf.reshape(x, [-1, 784])
  for units in (256, 256):
    x = tf.keras.layers.Dense(units, 'relu')(x)
  return tf.keras.layers.Dense(10)(x)


def _cnn(x):
  for filters in (8, 16):
    x = tf.keras.layers.Conv2D(filters, 3, strides=2, activation='relu')(x)
  return tf.keras.layers.Dense(10)(tf.keras.layers.Flatten()(x))


def _step(model, x, labels):
  loss = tf1.losses.sparse_softmax_cross_entropy(labels, model(x))
  return tf1.train.AdamOptimizer(1e-3).minimize(loss)


def _shard(tower, size):
  random = np.random.RandomState(tower)
  return (tf.constant(random.rand(size, 28, 28, 1).astype(np.float32)),
          tf.constant(random.randint(10, size=size)))


def _one_device(model):
  return _step(model, *_shard(0, _ROWS))


def _towers(model):
  strategy = tower_strategy.TowerStrategy(_DEVICES)
  with strategy.scope():
    batch = strategy.experimental_distribute_values_from_function(
        lambda context: _shard(context.replica_id_in_sync_group, _ROWS // 2))
    return strategy.run(lambda batch: _step(model, *batch), args=(batch,))


def _strategy(make):
  def build(model):
    strategy = make()

    def fn():
      tower = tf.distribute.get_replica_context().replica_id_in_sync_group
      del tower  # Every replica gets the same rows: only speed counts.
      return _step(model, *_shard(0, _ROWS // 2))

    with strategy.scope():
      steps = strategy.extended.call_for_each_replica(fn)
    return tf.group(*strategy.experimental_local_results(steps))
  return build


_MODELS = {'mlp': _mlp, 'cnn': _cnn}
_METHODS = {
    'one device': _one_device,
    'towers': _towers,
    'MirroredStrategy': _strategy(lambda: tf1.distribute.MirroredStrategy(
        _DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice())),
    'CentralStorageStrategy': _strategy(
        lambda: tf1.distribute.experimental.CentralStorageStrategy(
            compute_devices=_DEVICES, parameter_device='/cpu:0')),
}


def _session(build, model):
  graph = tf.Graph()
  with graph.as_default():
    step = build(model)
    session = tf1.Session(config=tf1.ConfigProto(
        device_count={'CPU': len(_DEVICES)}, allow_soft_placement=True))
    session.run(tf1.global_variables_initializer())
  return session, step


def steps(model, methods=tuple(_METHODS)):
  """Returns the session and the step of each method.

  Args:
    model: `mlp` or `cnn`.
    methods: Some of the keys above.
  """
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * len(_DEVICES))
  return [_session(_METHODS[name], _MODELS[model]) for name in methods]


def measure():
  """Returns milliseconds of a step, by model and method."""
  tf1.logging.set_verbosity(tf1.logging.ERROR)
  found = {}
  for model in _MODELS:
    runs = dict(zip(_METHODS, steps(model)))
    times = {name: [] for name in runs}
    for _ in range(_ROUNDS + 1):
      for name, (session, step) in runs.items():
        begin = time.perf_counter()
        for _ in range(_STEPS):
          session.run(step)
        times[name].append((time.perf_counter() - begin) / _STEPS * 1e3)
    found |= {f'{model}/{name}': statistics.median(rounds[1:])
              for name, rounds in times.items()}
  return found


if __name__ == '__main__':
  print(json.dumps(measure()))
