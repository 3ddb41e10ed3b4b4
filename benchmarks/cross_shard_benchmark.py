# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A synchronous step of CrossShardStrategy against TensorFlow's strategies.

usage: python -m benchmarks.cross_shard_benchmark

220 variables (200 of 1,000 floats, 20 of 100,000), and one of 10M floats; SGD
on a gradient that costs nothing. One process with two logical CPUs against
MirroredStrategy; two processes against MultiWorkerMirroredStrategy and, where
it is installed, Horovod: alone, and as our engine. Every figure is the least of
the steps of alternating runs, each in processes of its own, since TensorFlow's
strategies share collective keys within one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time

_SHAPES = {'220 variables': [1000] * 200 + [100_000] * 20,
           'one of 10M floats': [10_000_000]}
# What is measured: this package, over TensorFlow or Horovod; TensorFlow's
# strategy; Horovod alone.
OURS, ENGINE, THEIRS, HOROVOD = 'ours', 'engine', 'theirs', 'horovod'
_ROUNDS = 3
_STEPS = 30
_TIME_LIMIT_SECS = 180


def measure(kind: str, in_cluster: bool) -> float:
  """Returns the least milliseconds of a step.

  Args:
    kind: One of the names above.
    in_cluster: Whether there are two processes.
  """
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  import tensorflow as tf

  sizes = _SHAPES[os.environ['CROSS_SHARD_BENCHMARK_SHAPES']]
  sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
  if kind == HOROVOD:
    variables = [tf.Variable(tf.zeros([size])) for size in sizes]
    step = _horovod_step(variables, sgd)
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
  if kind == OURS:
    return cross_shard_strategy.CrossShardStrategy(names)
  if kind == ENGINE:
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


def _run(kind: str, num_processes: int, shapes: str) -> float:
  """Runs `measure` in processes of its own."""
  # Imported here: a process that measures sets the log level before.
  from tfplugin.bin import ports
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


def main() -> None:
  """Prints the table."""
  has_horovod = importlib.util.find_spec('horovod') is not None
  for num_processes, kinds in (
      (1, {OURS: 'ours', THEIRS: 'MirroredStrategy'}),
      (2, {OURS: 'ours', THEIRS: 'MultiWorkerMirroredStrategy',
           **({ENGINE: "ours, engine='horovod'", HOROVOD: 'Horovod alone'}
              if has_horovod else {})})):
    for shapes in _SHAPES:
      times = {kind: [] for kind in kinds}
      for _ in range(_ROUNDS):
        for kind, results in times.items():
          results.append(_run(kind, num_processes, shapes))
      ours = min(times[OURS])
      print(f'{num_processes} process(es), {shapes}:', '; '.join(
          f'{name} {min(times[kind]):.2f} ms (ours to it '
          f'{ours / min(times[kind]):.2f})' for kind, name in kinds.items()),
            flush=True)


if __name__ == '__main__':
  if len(sys.argv) == 3:
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]) > 1)))
  else:
    main()
