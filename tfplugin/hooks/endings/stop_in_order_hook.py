# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ends a training that is told to end by a signal, with a last checkpoint."""

from __future__ import annotations

import signal
import threading
from typing import Optional

import tensorflow as tf

from tfplugin.events import event_log

tf1 = tf.compat.v1

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopInOrderHook(tf1.train.SessionRunHook):
  """Lets SIGTERM and Ctrl-C end the training after the step that runs.

  The session then ends as after its last step: the chief saves a checkpoint.
  `tfplugin.estimator.train_and_evaluate` brings it. In a program that calls
  another function, call `raise_if_stopped` after the training.

  Signals are held back while there is a session; before, they act at once, as
  nothing is there to be saved, and so does a second signal. One that the
  program handles itself is left to it, and so are all of them outside the main
  thread, where Python handles none.

  Differences from tf.contrib: there was none; the signal ended the process, and
  what was learnt since the last checkpoint was lost.

  Example:
    >>> from tfplugin import hooks
    >>> hook = hooks.StopInOrderHook()
    >>> # estimator.train(input_fn, hooks=[hook])
    >>> hook.raise_if_stopped()
  """

  def __init__(self):
    """Handles no signal yet."""
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
    """Ends the training, if a signal has come."""
    del run_values
    if self._number is not None:
      run_context.request_stop()

  def has_stopped(self) -> bool:
    """Returns whether a signal has ended the training."""
    return self._number is not None

  def release(self) -> None:
    """Lets signals act as they did before the hook."""
    while self._previous:
      signal.signal(*self._previous.popitem())

  def raise_if_stopped(self) -> None:
    """Lets signals act again, and does what the one that came asked for.

    Raises:
      KeyboardInterrupt: it was SIGINT.
      SystemExit: it was SIGTERM; with 143, which is a shell's word for it.
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
