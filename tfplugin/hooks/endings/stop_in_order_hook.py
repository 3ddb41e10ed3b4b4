# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that ends a training after a signal, with a last checkpoint."""

from __future__ import annotations

import signal
import threading
from typing import Optional

import tensorflow as tf

from tfplugin.events import event_log

tf1 = tf.compat.v1

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopInOrderHook(tf1.train.SessionRunHook):
  """Ends the training after the current step on SIGTERM or Ctrl-C.

  The session then ends as after its last step: the chief saves a checkpoint.
  `tfplugin.estimator.train_and_evaluate` adds it. In a program that calls
  another function, call `raise_if_stopped` after the training.

  Signals are held back while there is a session. Before it, they act at once,
  as there is no state to save. A second signal acts at once too. A signal that
  the program handles itself is left alone. So are all signals outside the main
  thread, where Python handles none.

  Differences from tf.contrib: there was no such hook. A signal ended the
  process, and all steps since the last checkpoint were lost.

  Example:
    >>> from tfplugin import hooks
    >>> hook = hooks.StopInOrderHook()
    >>> # estimator.train(input_fn, hooks=[hook])
    >>> hook.raise_if_stopped()
  """

  def __init__(self):
    """Prepares the hook; it handles no signal yet."""
    self._number: Optional[int] = None
    self._previous = {}

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Holds the signals back from now on."""
    del session, coord
    if (self._previous or
        threading.current_thread() is not threading.main_thread()):
      return
    for number in _SIGNALS:
      handler = signal.getsignal(number)
      if handler in (signal.SIG_DFL, signal.default_int_handler):
        self._previous[number] = signal.signal(number, self._note)

  def after_run(self, run_context, run_values) -> None:
    """Ends the training after a signal."""
    del run_values
    if self._number is not None:
      run_context.request_stop()

  def has_stopped(self) -> bool:
    """Returns whether a signal has ended the training."""
    return self._number is not None

  def release(self) -> None:
    """Restores the handlers that the signals had before the hook."""
    while self._previous:
      signal.signal(*self._previous.popitem())

  def raise_if_stopped(self) -> None:
    """Restores the handlers, and raises the exception of a received signal.

    Raises:
      KeyboardInterrupt: the signal was SIGINT.
      SystemExit: it was SIGTERM; the status is 143, as in a shell.
    """
    self.release()
    if self._number == signal.SIGINT:
      raise KeyboardInterrupt
    if self._number is not None:
      raise SystemExit(128 + self._number)

  def _note(self, number: int, frame) -> None:
    del frame
    self._number = number
    self.release()
    event_log.write('stopping', signal=signal.Signals(number).name)
