# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run that this worker's own server has refused is ended.

A run of a session is cut into parts, one for each server. TensorFlow gives each
part an id, of a generator that it seeds anew for every run with 32 bits, and a
server remembers the last 100,000 ids: it takes one part of 43,000 for another
one sent twice, and refuses it. Another server's refusal is the run's error, an
AbortedError, and a MonitoredSession goes on with a new session. That of the
worker's own server comes before the other parts have been sent: TensorFlow
cancels what is not on its way yet, then sends it, and the run waits for ever
for a part that nobody runs. It is cancelled already, so that neither the limit
of a session nor its end cancels it once more.

So each run writes a mark first of all in the part of the worker's own. A run
that lasts, and whose mark does not come, has been refused. The other servers
wait for what that part sends, each by a connection to this worker's server:
without these they fail, and so does the run. TensorFlow connects again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import placement

tf1 = tf.compat.v1

WATCH = 'tfplugin watch of refused runs'
LIMIT_SECS = 20.0
# TensorFlow cuts a graph before it sends the parts: of the first run of a
# session the limit is so many times as long, of others at least so many times
# as long as the longest before, which may have been cut, too.
_OF_FIRST, _OF_LONGEST = 10, 2
_LOOK_SECS = 1.0
_NEVER = 0.0


class RefusedRuns:
  """Ends the session of a refused run, so that a new one is made.

  Attributes:
    mark: A tensor that each run is to fetch: writes the mark and returns it.
  """

  def __init__(self, device: str = '', limit_secs: float = LIMIT_SECS):
    """Makes the mark, in the default graph.

    Args:
      device: The worker's; empty for the session's own.
      limit_secs: How long a run lasts at least until it is looked at, the first
        one ten times as long. Doubles each time that one is ended.
    """
    self._limit_secs = limit_secs
    self._asked = self._over = None
    self._longest_secs = 0.0
    with tf.init_scope(), tf1.name_scope('refused_runs'), (
        placement.only_on(device)):
      # No variable: nothing would have to initialise or save it.
      handle = tf.raw_ops.VarHandleOp(
          dtype=tf.float64, shape=[],
          shared_name=tf1.get_default_graph().unique_name('refused_runs/mark'))
      now = tf.timestamp()
      with tf1.control_dependencies([
          tf.raw_ops.AssignVariableOp(resource=handle, value=now)]):
        self.mark = tf.identity(now)
      self._read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float64)
    self._last = _NEVER

  def begin(self, session: tf1.Session, coord: tf.train.Coordinator) -> None:
    """Begins to watch the runs of a session, if it is of a cluster.

    Args:
      session: A new session.
      coord: The session's, which is asked to stop with the error.
    """
    self.end()
    self._asked, self._longest_secs = None, 0.0
    if not session.sess_str:
      return
    self._over = threading.Event()
    self._last = self._written(session) or _NEVER
    threading.Thread(target=self._watch, args=(session, coord, self._over),
                     name=WATCH, daemon=True).start()

  def end(self) -> None:
    """Watches no more."""
    if self._over is not None:
      self._over.set()
      self._over = None

  def asked(self) -> None:
    """A run that fetches the mark is about to be asked for."""
    self._asked = (time.monotonic(),)

  def answered(self, mark: float) -> None:
    """A run has ended.

    Args:
      mark: What it has fetched.
    """
    self._longest_secs = max(self._longest_secs, self._lasts())
    self._asked, self._last = None, mark

  def run(self, session: tf1.Session, fetches: Any) -> Any:
    """Runs `fetches` with the mark, and returns what they are.

    Args:
      session: The session that is watched.
      fetches: As for `Session.run`.
    """
    self.asked()
    found, mark = session.run([fetches, self.mark])
    self.answered(mark)
    return found

  def _lasts(self) -> float:
    """How long the run has lasted."""
    asked = self._asked
    return time.monotonic() - asked[0] if asked else 0.0

  def _limit(self) -> float:
    longest = self._longest_secs
    return (max(self._limit_secs, _OF_LONGEST * longest) if longest else
            _OF_FIRST * self._limit_secs)

  def _watch(self, session, coord, over):
    suspect = None
    while not over.wait(_LOOK_SECS) and not coord.should_stop():
      asked = self._asked
      if asked is None or self._lasts() < self._limit():
        continue
      if self._written(session) != self._last or self._asked is not asked:
        continue
      # Twice, lest all of this process have been stopped meanwhile.
      if suspect is not asked:
        suspect = asked
        continue
      self._limit_secs *= 2
      message = (
          'A step has been waiting for its own part, which this task\'s server '
          'has refused: its id was that of an earlier one, by chance. The '
          'session is made anew.')
      tf1.logging.warning(message)
      try:
        raise tf.errors.AbortedError(None, None, message)
      except tf.errors.AbortedError as e:
        coord.request_stop(e)  # Which takes an error that is being handled.
      _end_connections(_port(session))
      session.close()
      return

  def _written(self, session) -> Optional[float]:
    """The mark; None where it cannot be told."""
    try:
      return session.run(self._read)
    except tf.errors.FailedPreconditionError:
      return _NEVER
    except (tf.errors.OpError, RuntimeError):  # The session has been closed.
      return None


def _port(session: tf1.Session) -> int:
  return int(tf.compat.as_str(session.sess_str).rpartition(':')[2])


def _end_connections(port: int) -> None:
  """Ends those that others have made to a port of this process.

  Args:
    port: One that it listens to.
  """
  for name in os.listdir('/dev/fd'):
    with contextlib.suppress(OSError):  # Closed meanwhile, or no socket.
      copy = os.dup(int(name))
      try:
        found = socket.socket(fileno=copy)
      except OSError:
        os.close(copy)
        continue
      with found:
        if (found.family in (socket.AF_INET, socket.AF_INET6) and
            found.getsockname()[1] == port):
          found.getpeername()  # Not the socket that listens.
          found.shutdown(socket.SHUT_RDWR)
