# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program of a process: one that measures by itself, or of a cluster.

usage: python -m benchmarks.growth.role size PART SIZE
       python -m benchmarks.growth.role ps|worker TASK SERVERS WORKERS
       python -m benchmarks.growth.role ps|start TASK SERVERS WORKERS \\
           CURVE SIZE BEGIN

Says `null` when it is ready, and then answers with a figure: asked for a curve;
a worker asked for a curve, the number of servers, a time to begin and a number
of seconds. `start` is a worker that makes a few steps, and then says what
memory it took and how long the first one.
"""

from __future__ import annotations

import os
import resource
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

from benchmarks import roles
from benchmarks import trained
from benchmarks.growth import cells

# Of what is measured once, so that a communication is in it.
_START_STEPS = 2 * cells.PERIOD + 1


def _size(name: str, size: str) -> None:
  requests = roles.requests()
  from benchmarks.growth import in_process
  part = next(part for part in cells.PARTS if part.name == name)
  found = in_process.measures(part, int(size))
  roles.say(None)
  while True:
    [curve] = requests.get()
    roles.say(found[curve]())


def _server(job, task, servers, workers):
  import tensorflow as tf
  server = tf.distribute.Server(
      tf.train.ClusterSpec({'ps': servers, 'worker': workers}), job, task)
  if job == 'ps':
    roles.say(None)
    server.join()
  return server


def _containers():
  """The curves of workers, by name and number of servers."""
  from benchmarks.network import cells as network
  ways = [network.Cell(cells.ASYNC),
          *map(network.Cell, cells.ON_SERVER),
          network.elastic(cells.PERIOD, 'plain')]
  return {(way.name, count): way for way in ways for count in (1, 2)}


def _worker(task, servers, workers):
  requests = roles.requests()
  import tensorflow as tf

  from benchmarks.network import models
  server, ways = _server('worker', task, servers, workers), {}
  for index, ((name, count), cell) in enumerate(_containers().items()):
    # Variables are on the first servers alone.
    cluster = tf.train.ClusterSpec({'ps': servers[:count], 'worker': workers})
    with tf.Graph().as_default() as graph, graph.container(f'way.{index}'):
      tf.compat.v1.set_random_seed(0)
      ways[name, count] = trained.start(
          models.build(cell, cluster, task), server, task, cell.period,
          task == 0)
      ways[name, count].step()
      ways[name, count].end_period()
  roles.say(None)
  while True:
    name, count, begin, secs = requests.get()
    roles.say(ways[name, count].for_secs(begin, secs))


def _start(task, servers, workers, curve, size, begin):
  roles.requests()
  import tensorflow as tf

  from benchmarks.growth import forms
  server = _server('worker', task, servers, workers)
  tf1, device = tf.compat.v1, f'/job:worker/task:{task}'
  with tf.Graph().as_default(), tf1.device(tf1.train.replica_device_setter(
      worker_device=device,
      cluster=tf.train.ClusterSpec({'ps': servers, 'worker': workers}))):
    tf1.set_random_seed(0)
    way = trained.start(forms.build(curve, forms.square_layers(int(size)),
                                    device), server, task, 1, True)
    way.step()
    first = time.time() - float(begin)
    for _ in range(_START_STEPS - 1):
      way.step()
  # In KB.
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  roles.say({cells.MEMORY: peak * 1024 / 1e6, cells.FIRST_STEP: first})


def main(argv: list[str]) -> None:
  """Runs the role that the arguments name."""
  kind = argv[1]
  if kind == 'size':
    _size(*argv[2:])
    return
  task, servers, workers = int(argv[2]), argv[3].split(','), argv[4].split(',')
  if kind == 'ps':
    roles.requests()
    _server(kind, task, servers, workers)
  elif kind == 'worker':
    _worker(task, servers, workers)
  else:
    _start(task, servers, workers, *argv[5:])


if __name__ == '__main__':
  main(sys.argv)
