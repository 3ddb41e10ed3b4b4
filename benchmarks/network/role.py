# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program of a host: a parameter server, a worker, or a part of a ring.

usage: python -m benchmarks.network.role ps|worker|RING TASK ADDRESSES

Reads requests from stdin, a line of JSON each, and answers with one; ends when
its input does. Says `null` when all cells are built and have made a step.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

from benchmarks.network import cells
from benchmarks.network import hosts

PORT = 2222
# The link is quiet when it has carried less than that in so long: what servers
# say to each other without work.
_QUIET_BYTES, _QUIET_SECS = 4096, 0.2
_DRAIN_SECS = 60.0


def _requests() -> queue.Queue:
  """The lines of stdin; the process ends with them, whatever it does."""
  lines = queue.Queue()

  def read():
    for line in sys.stdin:
      lines.put(json.loads(line))
    os._exit(0)

  threading.Thread(target=read, daemon=True).start()
  return lines


def _say(value):
  print(json.dumps(value), flush=True)


class Trained:
  """A cell that can make steps, and has made `count` so far."""

  def __init__(self, step, period):
    self._step, self._period = step, period
    self.count = 0

  def step(self):
    self._step()
    self.count += 1

  @property
  def communications(self):
    """How many have begun."""
    return self.count // self._period if self._period else 0

  def for_secs(self, begin: float, secs: float) -> float:
    """Steps per second of whole periods, from `begin` on, for `secs`."""
    time.sleep(max(0.0, begin - time.time()))
    ends = [] if self._period else [(time.time(), self.count)]
    while time.time() < begin + secs or len(ends) < 2:
      self.step()
      if not (self._period and self.count % self._period):
        ends.append((time.time(), self.count))
    (start, first), (end, last) = ends[0], ends[-1]
    return (last - first) / (end - start)

  def for_steps(self, begin: float, steps: int) -> float:
    """Steps per second of that many."""
    time.sleep(max(0.0, begin - time.time()))
    start = time.time()
    for _ in range(steps):
      self.step()
    return steps / (time.time() - start)


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


def _serve(trained: dict, requests: queue.Queue) -> None:
  _say(None)
  while True:
    name, begin, secs, steps = requests.get()
    cell = trained[name]
    sent, received = hosts.counted_bytes()
    count = cell.communications
    rate = cell.for_steps(begin, steps) if steps else cell.for_secs(begin, secs)
    _drain()
    now = hosts.counted_bytes()
    count = cell.communications - count
    _say([rate, [(now[0] - sent) / count, (now[1] - received) / count]
          if count else None])


def _ring(name: str, task: int, addresses: list[str]) -> None:
  os.environ['TF_CONFIG'] = json.dumps({
      'cluster': {'worker': [f'{address}:{PORT + 1 + cells.RINGS.index(name)}'
                             for address in addresses[:2]]},
      'task': {'type': 'worker', 'index': task}})
  requests = _requests()
  from benchmarks.network import models
  trained = Trained(models.ring_step(cells.Cell(name)), 1)
  trained.step()
  trained.step()
  _serve({name: trained}, requests)


def _session(built, server, task, cell):
  import tensorflow as tf
  tf1 = tf.compat.v1
  ready = tf1.report_uninitialized_variables(tf1.global_variables())
  initialize = tf1.global_variables_initializer()
  session = tf1.Session(server.target, config=tf1.ConfigProto(
      allow_soft_placement=True,
      device_filters=['/job:ps', f'/job:worker/task:{task}']))
  if task == 0 or cell.name == cells.LOCAL:
    session.run(initialize)
  while session.run(ready).size:
    time.sleep(0.1)
  for start in built.starts:
    session.run(start)
  for hook in built.hooks:
    hook.after_create_session(session, tf.train.Coordinator())
  call = session.make_callable(built.step)

  def step():
    for hook in built.hooks:
      hook.before_run(None)
    call()

  return Trained(step, cell.period)


def _worker(job: str, task: int, addresses: list[str]) -> None:
  import tensorflow as tf

  from benchmarks.network import models
  places = [f'{address}:{PORT}' for address in addresses]
  cluster = tf.train.ClusterSpec({'ps': places[2:], 'worker': places[:2]})
  requests = _requests()
  server = tf.distribute.Server(cluster, job, task)
  if job == 'ps':
    _say(None)
    server.join()
  trained = {}
  for cell in cells.CELLS:
    container = cell.name.translate(str.maketrans(' ,', '..'))
    if cell.name == cells.LOCAL:
      container += str(task)
    with tf.Graph().as_default() as graph, graph.container(container):
      tf.compat.v1.set_random_seed(0)
      trained[cell.name] = _session(
          models.build(cell, cluster, task), server, task, cell)
      trained[cell.name].step()
      _drain()
  _serve(trained, requests)


def main(argv: list[str]) -> None:
  """Runs the role that the arguments name."""
  kind, task, addresses = argv[1], int(argv[2]), argv[3].split(',')
  (_ring if kind in cells.RINGS else _worker)(kind, task, addresses)


if __name__ == '__main__':
  main(sys.argv)
