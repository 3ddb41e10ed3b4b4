# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors that another start may mend, and their exit status.

Workers that train in step are lost together. Their sums need every worker, and
TensorFlow lets no worker rejoin a run. The others would make a new session each
second, or wait in a step, for ever. All must end and restart together.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin.checkpoints import refused_writes
from tfplugin.distribute import cluster_task
from tfplugin.distribute.sessions import session_interception
from tfplugin.hooks.shutdown import contact

tf1 = tf.compat.v1

# EX_TEMPFAIL of sysexits.h, "try again later"; Python itself never uses it.
EXIT_STATUS = 75
WATCH = 'tfplugin watch of steps'
_REMEDY = (
    'Restart all workers together; they continue from the newest checkpoint. '
    'If a task had no more data, give all tasks the same number of batches, or '
    'let the input repeat and set `max_steps`.')
_MAY_PASS = (tf.errors.AbortedError, tf.errors.UnavailableError,
             refused_writes.WriteTimeoutError)
_COLLECTIVE = 'Collective ops is aborted'
# The interval of looks at the others' ports. One failed look is no proof.
_LOOK_SECS = 5.0
_NUM_LOOKS = 2


class LostPeerError(RuntimeError):
  """A worker that the others need is lost.

  A program that does not catch the error ends with `exit_status`.

  Attributes:
    exit_status: The exit status of the program.
  """

  exit_status = EXIT_STATUS


class LostPeersHook(tf1.train.SessionRunHook):
  """Ends this process when a worker of its group is lost.

  Raises LostPeerError when the session fails and would be made anew.
  """

  def __init__(self, task: cluster_task.ClusterTask,
               first_step_limit_secs: float,
               step_limit_secs: float | None):
    """Prepares the limits, in seconds.

    The first step's limit includes the making of the session. `step_limit_secs`
    applies to each later step; None: no limit. At a limit, or when a worker has
    ended that a step waits for, the process ends with `EXIT_STATUS`: nothing
    else ends the step.
    """
    self._task = task
    self._first_limit_secs = first_step_limit_secs
    self._limit_secs = step_limit_secs
    self._is_started = False
    self._deadline = None
    self._is_first = True
    self._over = threading.Event()

  def begin(self) -> None:
    """Starts the watch; see the class."""
    self._is_started = False
    self._over.clear()
    self._deadline = time.monotonic() + self._first_limit_secs
    session_interception.before_start(self._start)
    threading.Thread(target=self._watch, name=WATCH, daemon=True).start()

  def before_run(self, run_context) -> None:
    """Starts the limit of a step."""
    del run_context
    if self._deadline is None and self._limit_secs is not None:
      self._deadline = time.monotonic() + self._limit_secs

  def after_run(self, run_context, run_values) -> None:
    """Ends the limit of a step."""
    del run_context, run_values
    self._deadline, self._is_first = None, False

  def end(self, session: tf1.Session) -> None:
    """Ends the watch."""
    del session
    self.release()

  def release(self) -> None:
    """Ends the watch when no session ends: its limit would end the process."""
    self._over.set()

  def explain(self, kind: type | None, error: BaseException | None,
              trace: Any) -> None:
    """Replaces an error of a sum by a LostPeerError; called as `__exit__`.

    TensorFlow makes no new session after such an error, which ends the
    training.
    """
    del kind, trace
    if (isinstance(error, tf.errors.UnknownError) and 'Horovod' in str(error) or
        isinstance(error, tf.errors.OpError) and _COLLECTIVE in str(error)):
      raise self._loss() from error

  def _start(self) -> None:
    if self._is_started:
      raise self._loss()
    self._is_started = True

  def _loss(self) -> LostPeerError:
    self._over.set()
    return loss(f'{self._task.name} lost {self._lost()}. {_REMEDY}')

  def _watch(self) -> None:
    peers = _Peers(self._task)
    while not self._over.wait(0.2):
      deadline, now = self._deadline, time.monotonic()
      if self._limit_secs is not None and not self._is_first:
        peers.look(now)
      if deadline is not None and peers.lost():
        tf1.logging.error(
            '%s waits in a step for %s, where no task listens any more. %s',
            self._task.name, ', '.join(peers.lost()), _REMEDY)
        os._exit(EXIT_STATUS)
      if deadline is not None and now > deadline:
        tf1.logging.error(
            '%s waited in %s up to its limit for %s. %s', self._task.name,
            'the first step' if self._is_first else 'a step', self._lost(),
            _REMEDY)
        os._exit(EXIT_STATUS)

  def _lost(self) -> str:
    others = self._task.others
    away = contact.unreachable(self._task.cluster_spec, others)
    return ', '.join(away) or f'one of {", ".join(others)}'


class _Peers:
  """The other workers whose ports were open, and are closed."""

  def __init__(self, task: cluster_task.ClusterTask):
    self._task = task
    self._next_look = 0.0
    # By name; a worker that was never seen may use no port, as with Horovod.
    self._misses: dict[str, list[str]] = {}

  def look(self, now: float) -> None:
    """Looks at each port, unless the last look is not long ago."""
    if now < self._next_look:
      return
    self._next_look = now + _LOOK_SECS
    for name in self._task.others:
      away = contact.unreachable(self._task.cluster_spec, [name])
      if not away:
        self._misses[name] = []
      elif name in self._misses:
        self._misses[name] += away

  def lost(self) -> list[str]:
    """Returns the workers that were missed often enough, with addresses."""
    return [misses[0] for misses in self._misses.values()
            if len(misses) >= _NUM_LOOKS]


def loss(message: str) -> LostPeerError:
  """Returns a LostPeerError that ends a program that does not catch it."""
  sys.excepthook = functools.partial(_leave, sys.excepthook)
  return LostPeerError(message)


@contextlib.contextmanager
def exit_status_set() -> Iterator[None]:
  """Gives an error that another start may mend the `EXIT_STATUS`.

  A program that does not catch the error ends with it. These are errors of
  tasks that are away, and of a file system that refuses to write.
  """
  try:
    yield
  except (tf.errors.OpError, OSError) as error:
    if isinstance(error, _MAY_PASS) or refused_writes.reason(error):
      error.exit_status = EXIT_STATUS
      sys.excepthook = functools.partial(_leave, sys.excepthook)
    raise


def _leave(show: Callable[..., None], kind: type, error: BaseException,
           trace: Any) -> None:
  """Ends the process, in place of `sys.excepthook`.

  The interpreter's normal exit would wait for threads that wait for the lost
  worker.
  """
  show(kind, error, trace)
  if getattr(error, 'exit_status', None) == EXIT_STATUS:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_STATUS)
