# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A synchronous step of CrossShardStrategy against TensorFlow's strategies.

usage: python -m benchmarks.cross_shard_benchmark

220 variables (200 of 1,000 floats, 20 of 100,000), and one of 10M floats; SGD
on a gradient that costs nothing. One process with two logical CPUs against
MirroredStrategy; two processes against MultiWorkerMirroredStrategy. Every
figure is the least of the steps of alternating runs, each in processes of its
own, since TensorFlow's strategies share collective keys within one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

_SHAPES = {'220 variables': [1000] * 200 + [100_000] * 20,
           'one of 10M floats': [10_000_000]}
_ROUNDS = 2
_STEPS = 30
_TIME_LIMIT_SECS = 180


def measure(kind: str, in_cluster: bool) -> dict[str, float]:
  """Returns the least milliseconds of a step, by set of variables."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  import tensorflow as tf

  from tfplugin.distribute.shards import cross_shard_strategy
  from tfplugin.testing import devices

  names = None if in_cluster else devices.make_logical_cpus(2)
  if kind == 'ours':
    strategy = cross_shard_strategy.CrossShardStrategy(names)
  elif in_cluster:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
  else:
    strategy = tf.distribute.MirroredStrategy(names)
  sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)

  def time_steps(shapes):
    with strategy.scope():
      variables = [tf.Variable(tf.zeros([size])) for size in shapes]

    @tf.function
    def step():
      strategy.run(lambda: sgd.apply_gradients(
          [(v * 0.5 + 1.0, v) for v in variables]))

    best = float('inf')
    for _ in range(_STEPS):
      begin = time.perf_counter()
      step()
      best = min(best, time.perf_counter() - begin)
    return best * 1000

  name = os.environ['CROSS_SHARD_BENCHMARK_SHAPES']
  return {name: time_steps(_SHAPES[name])}


def _run(kind: str, num_processes: int, shapes: str) -> float:
  """Runs `measure` in processes of its own."""
  # Imported here: a process that measures sets the log level before.
  from tfplugin.bin import ports
  workers = [f'127.0.0.1:{port}' for port in ports.pick_free(num_processes)]
  processes = []
  try:
    for index in range(num_processes):
      environment = {**os.environ, 'CROSS_SHARD_BENCHMARK_SHAPES': shapes}
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
  return json.loads(outputs[0].splitlines()[-1])[shapes]


def main() -> None:
  """Prints the table."""
  for num_processes, other in ((1, 'MirroredStrategy'),
                               (2, 'MultiWorkerMirroredStrategy')):
    for shapes in _SHAPES:
      times = {'ours': [], 'theirs': []}
      for _ in range(_ROUNDS):
        for kind, results in times.items():
          results.append(_run(kind, num_processes, shapes))
      ours, theirs = min(times['ours']), min(times['theirs'])
      print(f'{num_processes} process(es), {shapes}: {ours:.2f} ms; {other} '
            f'{theirs:.2f} ms; ratio {ours / theirs:.2f}', flush=True)


if __name__ == '__main__':
  if len(sys.argv) == 3:
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]) > 1)))
  else:
    main()
