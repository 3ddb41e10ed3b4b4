# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to sum over two processes with TensorFlow's collectives, beside Horovod.

usage: python -m benchmarks.network.collectives [--rounds=3]

Each way sums 10M floats, or 220 tensors (200 of 1,000 floats and 20 of
100,000), in two processes of its own. In each round all ways run once. For each
way and round there is the least time of a step, and the least processor time of
one process in a step. Writes benchmarks/results/collectives.json and a part of
docs/speed.md. Where Horovod is installed, it runs beside them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import machine
from benchmarks import page_part

_SIZES = {'10M': [10_000_000], '220': [1000] * 200 + [100_000] * 20}
# Collectives of TensorFlow: bytes of a pack, parts of a collective, whether
# packs wait for each other, and the type that is sent.
_WAYS = {
    '10M floats': (0, -1, False, 'float32'),
    '10M floats, 16 parts': (0, 16, False, 'float32'),
    '10M floats, float16': (0, -1, False, 'float16'),
    '10M floats, float16, 16 parts': (0, 16, False, 'float16'),
    '220 tensors, packs in turn': (2 << 20, -1, True, 'float32'),
    '220 tensors, packs at once': (2 << 20, -1, False, 'float32'),
    '220 tensors, one pack': (1 << 30, -1, False, 'float32'),
    '220 tensors, packs at once, float16': (2 << 20, -1, False, 'float16'),
}
_HOROVOD = ('10M floats, Horovod', '220 tensors, Horovod')
_STEPS, _TIME_LIMIT_SECS = 12, 180


def _packs(tensors, limit):
  packs, size = [], limit
  for tensor in tensors:
    if size >= limit:
      packs.append([])
      size = 0
    packs[-1].append(tensor)
    size += tensor.shape.num_elements() * 4
  return packs


def _sums(tf, values, way):
  """Returns the sums of `values`, by TensorFlow's collectives."""
  limit, parts, in_turn, dtype = _WAYS[way]
  found = []
  for key, pack in enumerate(_packs(values, limit)):
    flat = tf.cast(tf.concat(pack, 0) if len(pack) > 1 else pack[0], dtype)
    with tf.control_dependencies(found[-1:] if in_turn else []):
      total = tf.raw_ops.CollectiveReduceV2(
          input=flat, group_size=2, group_key=1, instance_key=100 + key,
          ordering_token=[], merge_op='Add', final_op='Id',
          communication_hint='ring', timeout_seconds=_TIME_LIMIT_SECS,
          max_subdivs_per_device=parts)
    found += tf.split(tf.cast(total, 'float32'),
                      [value.shape.num_elements() for value in pack])
  return found


def _session(tf1, index):
  config = tf1.ConfigProto()
  config.experimental.collective_group_leader = (
      '/job:worker/replica:0/task:0')
  config.device_filters.extend(
      [f'/job:worker/task:{index}', '/job:worker/task:0'])
  server = tf1.train.Server(
      json.loads(os.environ['TF_CONFIG'])['cluster'], job_name='worker',
      task_index=index, config=config)
  return tf1.Session(server.target, config=config)


def _measure(way: str) -> list[float]:
  """Returns the least time and processor time of a step, in ms."""
  import tensorflow as tf
  tf1 = tf.compat.v1
  tf1.disable_v2_behavior()
  index = json.loads(os.environ['TF_CONFIG'])['task']['index']
  with tf.device(None if way in _HOROVOD else
                 f'/job:worker/task:{index}/cpu:0'):
    variables = [tf1.get_variable(f'v{i}', [size], use_resource=True)
                 for i, size in enumerate(_SIZES[way.split()[0]])]
    values = [v.read_value() * 0.5 + 1.0 for v in variables]
    if way in _HOROVOD:
      from tfplugin.distribute import cluster_task
      from tfplugin.distribute.shards import horovod_processes
      horovod_processes.join(cluster_task.from_environment())
      sums = [horovod_processes.sum_over(value) for value in values]
    else:
      sums = _sums(tf, values, way)
    # A part of each sum is needed, or TensorFlow would leave out Horovod's.
    step = tf.add_n([total[0] for total in sums])
  least = [float('inf')] * 2
  session = tf1.Session() if way in _HOROVOD else _session(tf1, index)
  session.run(tf1.global_variables_initializer())
  for _ in range(_STEPS):
    begin = time.perf_counter(), time.process_time()
    session.run(step)
    end = time.perf_counter(), time.process_time()
    least = [min(before, then - now) for before, now, then in zip(
        least, begin, end)]
  return [round(secs * 1e3, 2) for secs in least]


def _run(way: str) -> list[float]:
  """Measures in two processes."""
  from tfplugin.bin.processes import ports
  workers = [f'127.0.0.1:{port}' for port in ports.pick_free(2)]
  port, = ports.pick_free(1)
  processes = []
  try:
    for index in range(2):
      environment = {
          **os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3',
          'HOROVOD_GLOO_RENDEZVOUS_PORT': str(port),
          'TF_CONFIG': json.dumps({'cluster': {'worker': workers},
                                   'task': {'type': 'worker', 'index': index}})}
      processes.append(subprocess.Popen(
          [sys.executable, '-m', __spec__.name, way],
          env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
          text=True))
    outputs = [p.communicate(timeout=_TIME_LIMIT_SECS)[0] for p in processes]
  finally:
    for process in processes:
      process.kill()
      process.wait()
  return json.loads(outputs[0].splitlines()[-1])


def _lines(results: page_part.Results) -> Iterator[str]:
  yield ('Milliseconds of a sum over two processes of one machine, and of the '
         'processor time of one process: the median of the rounds, with the '
         'least and the largest. A pack has up to 2 MiB. Packs are summed one '
         'after the other ("in turn"), or at the same time. '
         '`python -m benchmarks.network.collectives` on '
         f'{machine.sentence(results["about"])}')
  yield from page_part.table('sum', ['ms', 'processor ms of each process'], [
      (name, [page_part.with_spread(each) for each in zip(*every)])
      for name, every in results['ways'].items()])


PART = page_part.PagePart(
    'collectives', 'Where the time of a sum over processes goes',
    'Not measured yet: `python -m benchmarks.network.collectives` writes this '
    'part.',
    _lines)


def main() -> None:
  """Measures every way, round by round, and writes the file and the part."""
  ways = list(_WAYS)
  if importlib.util.find_spec('horovod') is not None:
    ways += _HOROVOD
  parser = argparse.ArgumentParser()
  parser.add_argument('--rounds', type=int, default=3)
  parser.add_argument('way', nargs='?', help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.way:
    print(json.dumps(_measure(arguments.way)), flush=True)
    os._exit(0)  # A server does not end by itself.
  about = machine.about()
  found = {way: [] for way in ways}
  for _ in range(arguments.rounds):
    for way in found:
      found[way].append(_run(way))
      print(way, found[way][-1], flush=True)
  PART.write({'about': about, 'ways': found})


if __name__ == '__main__':
  main()
