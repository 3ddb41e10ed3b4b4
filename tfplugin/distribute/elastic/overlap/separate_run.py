# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Part of a step that is a session run of its own, made by a thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.distribute import time_limit
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.sessions import refused_runs

tf1 = tf.compat.v1

_STOP = _NOT_DUE = -1
_JOIN_SECS = 1.0
_LIMIT_SECS = 300.0
_UNSERVED = (
    'A session must have the hook that runs the exchanges where an earlier '
    'session of its graph had it, from the start of the session to its end. '
    'Received: a session without it, or a step before it has begun. Pass the '
    '`training_hooks` of the EstimatorSpec, or the hook of '
    '`optimizer.make_session_run_hook`, to a '
    '`tf.compat.v1.train.MonitoredSession`. A hook that trains in '
    '`after_create_session` must come after it, or train in `before_run`.')


class SeparateRun:
  """Work of a step that is due, in a session run of its own.

    a step that is due:   its number -> `begun`;   waits for `done`
    `run`, in a thread:   number <- `begun`;   the work;   `done`

  TensorFlow sends the messages of a branch in each step, also if the step does
  not take the branch. A separate run takes these messages out of the step. The
  values and their order stay the same.

  In a session without the hook `ExchangeThreads` no thread makes the runs.
  So at first the work is a branch of the step. The hook calls `separate` before
  the session exists.

  Attributes:
    serve: An op that begins; to run before the first `run`.
    run: The run: waits for a step that is due; negative at the end. None until
      the work is known.
    fail: An op that releases the waiting step after a failed run.
    stop: An op that makes the next `run` the last one.
    refused: Closes the session if this worker's server has refused a `run`.
    is_awaited: Whether the step that is due waits for the run.
  """

  run: tf.Tensor | None = None
  is_awaited = True

  def __init__(self, device: str, scope: str = 'elastic_exchange'):
    """Makes the queues on the worker's `device`, with names in `scope`."""
    self._device = device
    self._redirections, self._session = [], lambda: None
    self.refused = refused_runs.RefusedRuns(device)
    with tf.init_scope(), tf1.name_scope(scope), (
        placement.device_override(device)):
      # Capacity for a step's number and the end.
      self._begun = tf.queue.FIFOQueue(2, tf.int64, [[]], name='begun')
      self._done = tf.queue.FIFOQueue(1, tf.bool, [[]], name='done')
      # Queues as flags, set by an entry: a session need not initialise them.
      self._served = tf.queue.FIFOQueue(1, tf.bool, [[]], name='served')
      self._failed = tf.queue.FIFOQueue(1, tf.bool, [[]], name='failed')
      with tf1.control_dependencies([self._failed.enqueue(True)]):
        self.fail = self._done.enqueue(False)
      self.stop = tf.group(_emptied(self._served), self._begun.enqueue(
          tf.constant(_STOP, tf.int64)))
      # Discard the entries of an earlier session.
      with tf1.control_dependencies([_emptied(queue) for queue in (
          self._begun, self._done, self._served, self._failed)]):
        self.serve = tf.group(self._served.enqueue(True))

  def separate(self) -> None:
    """Takes the work out of the step, before the graph has a session."""
    for op, tensor in self._redirections:
      _tf_internals.redirect_input(op, 0, tensor)
    self._redirections = []

  def claim(self, session: tf1.Session) -> bool:
    """Returns whether no other hook has claimed the `session`."""
    known, self._session = self._session(), weakref.ref(session)
    return known is not session

  def end_step(self, due: tf.Tensor, step: tf.Tensor,
               make: Callable[[tf.Tensor], tf.Tensor],
               written: Sequence[tf.Variable], runs: list) -> tf.Tensor:
    """Ends a step with the work of `make`, if the step is `due`.

    `make` gets `step`, the step's number, and returns a tensor to depend on.
    The work writes the variables `written`. This object joins `runs`, unless
    the work needs other values of the step and has to stay a part of it.
    """
    with placement.device_override(self._device):
      # In the control dependencies of the caller.
      in_step = tf.where(due, step, tf.constant(_NOT_DUE, tf.int64))
      starts = tf.logical_and(due, tf.equal(self._failed.size(), 0))
      waited = branching.cond(starts, lambda: self._wait(step))
    made, number, taken = self.build(make, written, in_step)
    with placement.device_override(self._device):
      ended = tf.identity(made)
    if self.run is not None:
      self._redirections = [(number.op, taken), (ended.op, waited)]
      if self not in runs:  # A step may be built again.
        runs.append(self)
    return ended

  def build(self, make: Callable, written: Sequence[tf.Variable],
            in_step: tf.Tensor | None = None) -> tuple[tf.Tensor, ...]:
    """Builds the work and `run`.

    `in_step` is the number of the step that makes the work itself, if there is
    one. Returns a tensor of the work, the number that the work uses, and the
    number that comes from `begun`.
    """
    self.run, known = None, set(tf1.get_default_graph().get_operations())
    with tf1.control_dependencies(None), tf1.name_scope(None):
      with placement.device_override(self._device):
        taken = self._begun.dequeue()
        number = tf.identity(taken if in_step is None else in_step)
        is_step = tf.greater_equal(number, 0)
      made = branching.cond(is_step, lambda: make(number), updated=written)
      with tf1.control_dependencies([made]):
        reported = branching.cond(is_step, self._report)
      with tf1.control_dependencies([reported]), (
          placement.device_override(self._device)):
        run = tf.identity(number)
    needed = graph_order.upstream([made.op], stop=lambda op: op is number.op)
    if all(map(_tf_internals.is_constant_or_read, needed & known)):
      self.run = run
    return made, number, taken

  def begin(self, step: tf.Tensor) -> tf.Operation:
    """Returns the op that begins the work of the step with number `step`."""
    with placement.device_override(self._device):
      return self._begun.enqueue(step)

  def check_served(self, refusal: str) -> tf.Operation:
    """Returns an op that raises `refusal` in a session without the hook."""
    with placement.device_override(self._device):
      return tf.debugging.Assert(tf.greater(self._served.size(), 0), [refusal])

  def variables(self) -> list[tf.Variable]:
    """Returns the worker's variables that this object has made."""
    return []

  def _wait(self, step):
    with tf1.control_dependencies([self.check_served(_UNSERVED)]):
      begun = self.begin(step)
    with tf1.control_dependencies([begun]), (
        placement.device_override(self._device)):
      return self._done.dequeue()

  def _report(self):
    with placement.device_override(self._device):
      done = self._done.enqueue(True)
    return branching.done([done])


def is_useful(pairs: Iterable[elastic_pairs.Pair]) -> bool:
  """Returns whether an exchange sends messages, and is not in a branch."""
  if tf.executing_eagerly() or tf.inside_function() or (
      branching.current_branch()[1] is not None):
    return False
  return any(placement.is_remote(pair.center.device, pair.local.device)
             for pair in pairs)


def _emptied(queue: tf.queue.QueueBase) -> tf.Tensor:
  return queue.dequeue_many(queue.size())


def hooks_of(runs: Sequence[SeparateRun]) -> list:
  """Returns the hooks that a session with `runs` needs: none, or one."""
  return [ExchangeThreads(runs)] if runs else []


class ExchangeThreads(tf1.train.SessionRunHook):
  """Hook that runs a worker's exchanges, each in a thread.

  A thread lives as long as its session. At a normal end it first finishes the
  exchange in flight; a closed session cancels the exchange. The hook raises an
  exchange's error in the current or the next step. So a session that survives
  the loss of a parameter server survives it in an exchange, too. At the end of
  a session whose steps wait for their exchanges, none is in flight. Then the
  loss of a parameter server is no error.
  """

  def __init__(
      self, exchanges: Sequence[SeparateRun]):
    """Stores the exchanges; the list may grow until there is a session."""
    self._exchanges = exchanges
    self._served, self._threads = [], []
    self._error = None

  def begin(self) -> None:
    """Takes the exchanges out of the steps of the graph."""
    for exchange in self._exchanges:
      exchange.separate()

  def after_create_session(self, session: tf1.Session,
                           coord: tf.train.Coordinator) -> None:
    """Starts the threads; `coord` reports when the session is about to end."""
    self._join()  # The threads of a lost session.
    self._error = None
    self._served = [each for each in self._exchanges if each.claim(session)]
    if not self._served:
      return
    session.run([exchange.serve for exchange in self._served])
    self._threads = [
        threading.Thread(target=self._serve, args=(session, coord, exchange),
                         name='elastic exchange', daemon=True)
        for exchange in self._served]
    for thread in self._threads:
      thread.start()

  def before_run(self, run_context: tf1.train.SessionRunContext) -> None:
    """Raises an error of an exchange since the last step."""
    del run_context
    self._raise_error()

  def after_run(self, run_context: tf1.train.SessionRunContext,
                run_values: tf1.train.SessionRunValues) -> None:
    """Raises an error of an exchange during this step."""
    del run_context, run_values
    self._raise_error()

  def end(self, session: tf1.Session) -> None:
    """Waits for the exchange in flight; after 5 minutes, TimeoutError."""
    if any(thread.is_alive() for thread in self._threads):
      session.run([exchange.stop for exchange in self._served])
    self._join()
    if all(exchange.is_awaited for exchange in self._served) and isinstance(
        self._error, (tf.errors.AbortedError, tf.errors.UnavailableError)):
      tf1.logging.info('A parameter server had ended before: %s', self._error)
      self._error = None
    self._raise_error()

  def _serve(self, session, coord, exchange):
    try:
      exchange.refused.begin(session, coord)
      while exchange.refused.run(session, exchange.run) >= 0:
        pass
    except Exception as error:  # noqa: BLE001 (the step raises it)
      if coord.should_stop():
        return  # The session was closed.
      self._error = error
      try:
        session.run(exchange.fail)
      except Exception:  # noqa: BLE001 (nothing runs any more)
        if not coord.should_stop():  # Else a step has raised it already.
          coord.request_stop(error)
          session.close()
    finally:
      exchange.refused.end()

  def _join(self):
    patience = time_limit.Patience('This worker', _LIMIT_SECS)
    for thread in self._threads:
      while thread.is_alive():
        thread.join(_JOIN_SECS)
        patience.check('the end of an exchange of elastic averaging',
                       'See the logs of the parameter servers.')
    self._threads = []

  def _raise_error(self):
    if self._error is not None:
      error, self._error = self._error, None
      raise error
