# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways to train that can make steps, and how many a second."""

from __future__ import annotations

import time
from typing import Any
from typing import Callable


class Trained:
  """A way to train, which has made `count` steps so far."""

  def __init__(self, step: Callable[[], Any], period: int):
    """Says how a step is made.

    Args:
      step: Makes one.
      period: Steps from one communication to the next; 0: there is none.
    """
    self._step, self._period = step, period
    self.count = 0

  def step(self):
    """Makes a step."""
    self._step()
    self.count += 1

  @property
  def communications(self):
    """How many have begun: a period begins with one."""
    return -(-self.count // self._period) if self._period else 0

  def end_period(self) -> None:
    """Makes the steps that the period lacks: the next one communicates."""
    while not self._is_end():
      self.step()

  def for_secs(self, begin: float, secs: float, before: float = 0.0,
               after: float = 0.0) -> float:
    """Makes steps for a time, and then those that the period lacks.

    Args:
      begin: When the first step is made.
      secs: The time whose steps count; longer until there is a period.
      before: The time until then, of steps that do not count.
      after: The time beyond that, so that others are not alone at their end.

    Returns:
      Steps per second, of whole periods.
    """
    time.sleep(max(0.0, begin - time.time()))
    counted, ends = begin + before, []
    while True:
      now = time.time()
      is_counted = counted <= now < counted + secs or len(ends) < 2
      if now >= counted and is_counted and self._is_end():
        ends.append((now, self.count))
      if now >= counted + secs + after and len(ends) > 1:
        break
      self.step()
    self.end_period()
    (start, first), (end, last) = ends[0], ends[-1]
    return (last - first) / (end - start)

  def _is_end(self):
    return not (self._period and self.count % self._period)

  def for_steps(self, begin: float, steps: int) -> float:
    """Steps per second of that many."""
    time.sleep(max(0.0, begin - time.time()))
    start = time.time()
    for _ in range(steps):
      self.step()
    return steps / (time.time() - start)


def cluster_here() -> tuple[Any, Any]:
  """Returns a cluster of a worker and a server in this process, and the worker.

  They have no end.
  """
  import tensorflow as tf

  from tfplugin.bin.processes import ports
  hosts = [f'127.0.0.1:{port}' for port in ports.pick_free(2)]
  cluster = tf.train.ClusterSpec({'ps': hosts[:1], 'worker': hosts[1:]})
  servers = [tf.distribute.Server(cluster, job, 0) for job in ('ps', 'worker')]
  return cluster, servers[1]


def start_session(built: Any, server: Any, task: int, initializes: bool) -> Any:
  """Returns a session of a cluster's worker, ready to make steps.

  Args:
    built: `step`, `starts` and `hooks`, as of `network.models.Built`, in the
      default graph.
    server: The worker's.
    task: The worker's number.
    initializes: Whether it gives the variables their values; else it waits
      until another one has.
  """
  import tensorflow as tf
  tf1 = tf.compat.v1
  ready = tf1.report_uninitialized_variables(tf1.global_variables())
  initialize = tf1.global_variables_initializer()
  session = tf1.Session(server.target, config=tf1.ConfigProto(
      allow_soft_placement=True,
      device_filters=['/job:ps', f'/job:worker/task:{task}']))
  if initializes:
    session.run(initialize)
  while session.run(ready).size:
    time.sleep(0.1)
  for each in built.starts:
    session.run(each)
  for hook in built.hooks:
    hook.after_create_session(session, tf.train.Coordinator())
  return session


def start(built: Any, server: Any, task: int, period: int,
          initializes: bool) -> Trained:
  """Returns what has been built, in a session of a cluster's worker.

  Args:
    built: As for `start_session`, like the others.
    server: The worker's.
    task: The worker's number.
    period: See `Trained`.
    initializes: Whether it gives the variables their values.
  """
  import tensorflow as tf
  tf1 = tf.compat.v1
  session = start_session(built, server, task, initializes)
  call = session.make_callable(built.step)
  context = tf1.train.SessionRunContext(tf1.train.SessionRunArgs(None), session)

  def step():
    for hook in built.hooks:
      hook.before_run(context)
    call()

  return Trained(step, period)
