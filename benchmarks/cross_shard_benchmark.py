# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A synchronous step of CrossShardStrategy against TensorFlow's strategies.

usage: python -m benchmarks.cross_shard_benchmark

220 variables (200 of 1,000 floats, 20 of 100,000), and one of 10M floats; SGD
on a gradient that costs nothing. One process with two logical CPUs against
MirroredStrategy; two processes against MultiWorkerMirroredStrategy and, where
it is installed, Horovod: alone, and as our engine. Every figure is the least of
the steps of alternating runs, each in processes of its own, since TensorFlow's
strategies share collective keys within one. Prints the figures as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time

from benchmarks import rows

_SHAPES = dict(zip(rows.SHAPES, ([1000] * 200 + [100_000] * 20, [10_000_000])))
# What is measured: this package, over TensorFlow or Horovod; TensorFlow's
# strategies; Horovod alone; one sum of as many floats by TensorFlow, alone.
_OURS, _ENGINE, _HOROVOD, _ALONE = 'ours', 'engine', 'Horovod', 'all-reduce'
_THEIRS = {1: 'MirroredStrategy', 2: 'MultiWorkerMirroredStrategy'}
_ROUNDS = 2
_STEPS = 30
_TIME_LIMIT_SECS = 180


def _least_ms(kind: str, in_cluster: bool) -> float:
  """Returns the least milliseconds of a step, in this process."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  import tensorflow as tf

  sizes = _SHAPES[os.environ['CROSS_SHARD_BENCHMARK_SHAPES']]
  sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
  if kind == _HOROVOD:
    variables = [tf.Variable(tf.zeros([size])) for size in sizes]
    step = _horovod_step(variables, sgd)
  elif kind == _ALONE:
    step = _sum_of(sum(sizes))
  else:
    strategy = _strategy(kind, in_cluster)
    with strategy.scope():
      variables = [tf.Variable(tf.zeros([size])) for size in sizes]

    def step():
      strategy.run(lambda: sgd.apply_gradients(
          [(v * 0.5 + 1.0, v) for v in variables]))

  step = tf.function(step)
  best = float('inf')
  for _ in range(_STEPS):
    begin = time.perf_counter()
    step()
    best = min(best, time.perf_counter() - begin)
  return best * 1000


def _strategy(kind: str, in_cluster: bool):
  import tensorflow as tf

  from tfplugin.distribute.shards import cross_shard_strategy
  from tfplugin.testing import devices

  names = None if in_cluster else devices.make_logical_cpus(2)
  if kind == _OURS:
    return cross_shard_strategy.CrossShardStrategy(names)
  if kind == _ENGINE:
    return cross_shard_strategy.CrossShardStrategy(names, engine='horovod')
  return (tf.distribute.MultiWorkerMirroredStrategy() if in_cluster
          else tf.distribute.MirroredStrategy(names))


def _horovod_step(variables, optimizer):
  """Returns a step of a program that was written for Horovod."""
  from tfplugin.distribute import cluster_task
  from tfplugin.distribute.shards import horovod_processes
  horovod_processes.join(cluster_task.from_environment())
  import horovod.tensorflow as hvd

  def step():
    optimizer.apply_gradients(
        [(hvd.allreduce(v * 0.5 + 1.0, op=hvd.Sum), v) for v in variables])

  return step


def _sum_of(size):
  """Returns a step that sums one tensor over the processes."""
  import tensorflow as tf
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  with strategy.scope():
    floats = tf.Variable(tf.zeros([size]))

  def replica():
    total = tf.distribute.get_replica_context().all_reduce(
        tf.distribute.ReduceOp.SUM, floats + 1.0)
    return total[0]

  return lambda: strategy.run(replica)


def _run(kind: str, num_processes: int, shapes: str) -> float:
  """Runs `_least_ms` in processes of its own."""
  # Imported here: a process that measures sets the log level before.
  from tfplugin.bin.processes import ports
  meeting_port, = ports.pick_free(1)
  workers = [f'127.0.0.1:{port}' for port in ports.pick_free(num_processes)]
  processes = []
  try:
    for index in range(num_processes):
      environment = {**os.environ, 'CROSS_SHARD_BENCHMARK_SHAPES': shapes,
                     'HOROVOD_GLOO_RENDEZVOUS_PORT': str(meeting_port)}
      environment.pop('TF_CONFIG', None)
      if num_processes > 1:
        environment['TF_CONFIG'] = json.dumps({
            'cluster': {'worker': workers},
            'task': {'type': 'worker', 'index': index}})
      processes.append(subprocess.Popen(
          [sys.executable, '-m', __spec__.name, kind, str(num_processes)],
          env=environment, stdout=subprocess.PIPE, text=True))
    outputs = [p.communicate(timeout=_TIME_LIMIT_SECS)[0] for p in processes]
  finally:
    for process in processes:
      process.kill()
      process.wait()
  return json.loads(outputs[0].splitlines()[-1])


def measure() -> dict[str, float]:
  """Returns the least milliseconds of a step, by what makes it."""
  found = {}
  for num_processes, theirs in _THEIRS.items():
    kinds = [_OURS, theirs]
    if num_processes > 1:
      kinds.append(_ALONE)
      if importlib.util.find_spec('horovod') is not None:
        kinds += [_ENGINE, _HOROVOD]
    for shapes in _SHAPES:
      for _ in range(_ROUNDS):
        for kind in kinds:
          name = f'{num_processes}/{shapes}/{kind}'
          found[name] = min(found.get(name, float('inf')),
                            _run(kind, num_processes, shapes))
  return found


if __name__ == '__main__':
  print(json.dumps(
      _least_ms(sys.argv[1], sys.argv[2] != '1') if sys.argv[1:]
      else measure()))
