# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads that run exchanges for the life of a session."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.distribute import time_limit
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic.overlap import separate_run

tf1 = tf.compat.v1

_JOIN_SECS = 1.0
_LIMIT_SECS = 300.0


def hooks_of(exchange: elastic_exchange.Exchange) -> list:
  """Returns the hooks that a session of `exchange` needs: none, or one."""
  return [ExchangeThreads(exchange.runs)] if exchange.runs else []


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
      self, exchanges: Sequence[separate_run.SeparateRun]):
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
