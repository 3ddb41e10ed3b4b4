# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program of a host: a parameter server, a worker, or a part of a ring.

usage: python -m benchmarks.network.role ps|worker|RING TASK HOSTS CELLS

Reads requests from stdin, a line of JSON each, and answers with one; ends when
its input does. HOSTS are the addresses by job, in JSON. Says `null` when those
of the cells (a list in JSON) that are its own are built and have made a step.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

from benchmarks import roles
from benchmarks import trained
from benchmarks.network import cells
from benchmarks.network import hosts

PORT = 2222
# The link is quiet when it has carried less than that in so long: what servers
# say to each other without work.
_QUIET_BYTES, _QUIET_SECS = 4096, 0.2
_DRAIN_SECS = 60.0
# Two workers on a machine of two cores: more threads would take turns, which
# those of two hosts do not. Within an op, and of ops that could run together.
_CORES_OF_HOST = 1
_MEETING_PORT = PORT + 20  # Of Horovod's processes.


def _drain() -> None:
  """Waits until the link is quiet: a communication may be on its way."""
  limit, before = time.time() + _DRAIN_SECS, None
  while True:
    now = sum(hosts.counted_bytes())
    if before is not None and now - before < _QUIET_BYTES:
      return
    if time.time() > limit:
      raise TimeoutError(f'The link is not quiet after {_DRAIN_SECS:g} s.')
    before = now
    time.sleep(_QUIET_SECS)


def _serve(ways: dict, requests: queue.Queue) -> None:
  roles.say(None)
  while True:
    name, begin, (before, secs, after), steps = requests.get()
    cell = ways[name]
    sent, received = hosts.counted_bytes()
    count, made = cell.communications, cell.count
    rate = (cell.for_steps(begin, steps) if steps else
            cell.for_secs(begin, secs, before, after))
    if name not in cells.OF_HOROVOD:  # Whose processes are never quiet.
      _drain()
    now = hosts.counted_bytes()
    count = cell.communications - count
    roles.say([rate, [(now[0] - sent) / count, (now[1] - received) / count]
          if count else None, cell.count - made])


def _ring(name: str, task: int, hosts_by_job: dict[str, list[str]]) -> None:
  port = PORT + 1 + (cells.RINGS + cells.OF_HOROVOD).index(name)
  os.environ['TF_CONFIG'] = json.dumps({
      'cluster': {'worker': [f'{address}:{port}'
                             for address in hosts_by_job['worker']]},
      'task': {'type': 'worker', 'index': task}})
  os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT'] = str(_MEETING_PORT)
  requests = roles.requests()
  import tensorflow as tf
  tf.config.threading.set_intra_op_parallelism_threads(_CORES_OF_HOST)
  tf.config.threading.set_inter_op_parallelism_threads(_CORES_OF_HOST)
  from benchmarks.network import models
  way = trained.Trained(models.ring_step(cells.Cell(name)), 1)
  way.step()
  way.step()
  _serve({name: way}, requests)


def _worker(job: str, task: int, hosts_by_job: dict[str, list[str]],
            names: list[str]) -> None:
  import tensorflow as tf

  from benchmarks.network import models
  cluster = tf.train.ClusterSpec({
      job: [f'{address}:{PORT}' for address in addresses]
      for job, addresses in hosts_by_job.items()})
  requests = roles.requests()
  server = tf.distribute.Server(
      cluster, job, task, config=tf.compat.v1.ConfigProto(
          intra_op_parallelism_threads=_CORES_OF_HOST,
          inter_op_parallelism_threads=_CORES_OF_HOST))
  if job == 'ps':
    roles.say(None)
    server.join()
  ways = {}
  for cell in (cell for cell in cells.CELLS if cell.name in names):
    container = cell.name.translate(str.maketrans(' ,', '..'))
    if cell.name == cells.LOCAL:
      container += str(task)
    with tf.Graph().as_default() as graph, graph.container(container):
      tf.compat.v1.set_random_seed(0)
      ways[cell.name] = trained.start(
          models.build(cell, cluster, task), server, task, cell.period,
          task == 0 or cell.name == cells.LOCAL)
      ways[cell.name].step()
      ways[cell.name].end_period()
      _drain()
  _serve({**ways, **{name: ways.get(cell.name)
                     for name, cell in cells.ALONE_STEPS.items()}}, requests)


def main(argv: list[str]) -> None:
  """Runs the role that the arguments name."""
  kind, task, hosts_by_job = argv[1], int(argv[2]), json.loads(argv[3])
  if kind in cells.RINGS + cells.OF_HOROVOD:
    _ring(kind, task, hosts_by_job)
  else:
    _worker(kind, task, hosts_by_job, json.loads(argv[4]))


if __name__ == '__main__':
  main(sys.argv)
