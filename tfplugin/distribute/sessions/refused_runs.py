# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Watch that ends a run that this worker's own server has refused.

TensorFlow cuts a run of a session into parts, one for each server. Each part
gets a 32-bit id of a generator that is seeded anew for every run. A server
remembers the last 100,000 ids. By chance it takes one part of 43,000 for a
repeated one, and refuses it.

A refusal by another server is an AbortedError of its part, and a
MonitoredSession continues with a new session. If TensorFlow gives the run the
class of another part's error, `as_loss` corrects it.

A refusal by the worker's own server comes before the other parts have been
sent. TensorFlow first cancels the parts that are not sent yet, and then sends
them. The run waits forever for a part that no server runs. It is cancelled
already, so neither the limit of a session nor its end cancels it again.

So each run first writes a mark, in the part of the worker's own server: a step,
a run of a hook, an exchange. A long run without its mark has been refused. The
other servers wait for tensors of that part, each by a connection to this
worker's server. Once these connections are closed, the servers fail, and so
does the run. TensorFlow connects again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin.distribute import placement

tf1 = tf.compat.v1

WATCH = 'tfplugin watch of refused runs'
LIMIT_SECS = 20.0
# TensorFlow cuts a graph before it sends the parts. So the limit of the first
# run of the same fetches is this many times as long. For later runs it is at
# least this many times the longest run before, which may have included a cut.
_OF_FIRST, _OF_LONGEST = 10, 2
_LOOK_SECS = 1.0
# Errors of several parts are one message, in which each has a line. The newest
# logs in it are indented.
_OF_LOST_PART = re.compile('^(ABORTED|UNAVAILABLE): ', re.MULTILINE)
_NEVER = 0.0
# 0 is the limit of the session's config.
_NO_LIMIT_MSECS = 365 * 24 * 3600 * 1000


def as_loss(error: tf.errors.OpError) -> tf.errors.OpError:
  r"""Returns an AbortedError for the error of a run that has lost a part.

  If several parts fail, the run's error has the class of one of them, by
  chance. A CancelledError ends the training, also if no caller has cancelled
  it. Any other error is returned as it is.

  Example:
    >>> error = tf.errors.CancelledError(
    ...     None, None, 'CANCELLED: of a receive\nABORTED: received twice')
    >>> type(as_loss(error)).__name__
    'AbortedError'
  """
  if (isinstance(error, tf.errors.CancelledError) and
      _OF_LOST_PART.search(error.message)):
    return tf.errors.AbortedError(error.node_def, error.op, error.message)
  return error


class RefusedRuns:
  """Watch that ends the session of a refused run, so that a new one is made.

  `mark` is a tensor that writes the mark and returns it.
  """

  def __init__(self, device: str = '', limit_secs: float = LIMIT_SECS):
    """Makes the mark, in the default graph.

    `device` is the worker's; empty means the session's own. `limit_secs` is the
    shortest duration of a run that is checked; ten times that for the first run
    of the same fetches. It doubles with each run that is ended.
    """
    self._limit_secs = limit_secs
    self._asked = self._over = self._session = self._thread = None
    self._longest_secs, self._known = 0.0, set()
    with tf.init_scope(), tf1.name_scope('refused_runs'), (
        placement.device_override(device)):
      # Not a tf.Variable: it is never initialised or saved.
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
    """Begins to watch the runs of a new session, if it is of a cluster.

    `coord`, the session's coordinator, is stopped with the error.
    """
    self.end()
    self._asked, self._longest_secs, self._known = None, 0.0, set()
    if not session.sess_str:
      return
    self._over = threading.Event()
    self._last = self._written(session) or _NEVER
    self._session = session
    self.follow_thread()
    threading.Thread(target=self._watch, args=(session, coord, self._over),
                     name=WATCH, daemon=True).start()

  def end(self) -> None:
    """Ends the watch."""
    self._session = None
    if self._over is not None:
      self._over.set()
      self._over = None

  def follow_thread(self) -> None:
    """Watches the runs of the current thread, which makes the steps.

    There is one mark, so other threads' runs are not watched.
    """
    self._thread = threading.get_ident()

  def watched(self, run: Callable[..., Any], session: tf1.Session, fetches: Any,
              *args: Any, **kwargs: Any) -> Any:
    """Returns the result of `run`, which replaces `Session.run` of a graph."""
    try:
      if session is not self._session or (
          threading.get_ident() != self._thread):
        return run(session, fetches, *args, **kwargs)
      return self._marked(functools.partial(run, session), session, fetches,
                          *args, **kwargs)
    except tf.errors.OpError as error:
      changed = as_loss(error)
      if changed is error:
        raise
      raise changed from error

  def run(self, session: tf1.Session, fetches: Any) -> Any:
    """Returns the result of `session.run(fetches)`, run with the mark.

    The time limit of the session's config is for steps. It does not apply.
    """
    return self._marked(session.run, session, fetches, options=tf1.RunOptions(
        timeout_in_ms=_NO_LIMIT_MSECS))

  def _marked(self, run, session, fetches, *args, **kwargs):
    names = (_names(fetches), _names(kwargs.get('feed_dict', args[:1])))
    self._asked = (time.monotonic(), names not in self._known)
    try:
      found, self._last = run([fetches, self.mark], *args, **kwargs)
      self._known.add(names)
    except tf.errors.OpError:
      self._last = self._written(session) or _NEVER
      raise
    finally:
      self._longest_secs = max(self._longest_secs, self._lasts())
      self._asked = None
    return found

  def _lasts(self) -> float:
    """Returns the duration of the current run in seconds."""
    asked = self._asked
    return time.monotonic() - asked[0] if asked else 0.0

  def _limit(self) -> float:
    asked = self._asked
    return max(_OF_LONGEST * self._longest_secs, self._limit_secs * (
        _OF_FIRST if asked and asked[1] else 1))

  def _watch(self, session, coord, over):
    suspect = None
    while not over.wait(_LOOK_SECS) and not coord.should_stop():
      asked = self._asked
      if asked is None or self._lasts() < self._limit():
        continue
      if self._written(session) != self._last or self._asked is not asked:
        continue
      # Checked twice, in case this process was stopped meanwhile.
      if suspect is not asked:
        suspect = asked
        continue
      self._limit_secs *= 2
      message = (
          'The server of this task refused a part of a step, whose random id '
          'equals the id of an earlier step. The session is made anew.')
      tf1.logging.warning(message)
      try:
        raise tf.errors.AbortedError(None, None, message)
      except tf.errors.AbortedError as e:
        coord.request_stop(e)  # It needs an error that is being handled.
      _end_connections(_port(session))
      session.close()
      return

  def _written(self, session) -> float | None:
    """Returns the mark; None if the session is closed or fails."""
    try:
      return session.run(self._read)
    except tf.errors.FailedPreconditionError:
      return _NEVER
    except (tf.errors.OpError, RuntimeError):  # The session has been closed.
      return None


def _names(fetches: Any) -> Any:
  """Returns the names of fetches or feeds, in their structure."""
  if isinstance(fetches, Mapping):
    return tuple((str(key), _names(value)) for key, value in fetches.items())
  if isinstance(fetches, (list, tuple)):
    return tuple(map(_names, fetches))
  return getattr(fetches, 'name', None) or str(type(fetches))


def _port(session: tf1.Session) -> int:
  return int(tf.compat.as_str(session.sess_str).rpartition(':')[2])


def _end_connections(port: int) -> None:
  """Ends the connections of other processes to a port of this process."""
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
          found.getpeername()  # Fails for the listening socket.
          found.shutdown(socket.SHUT_RDWR)
