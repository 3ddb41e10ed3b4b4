# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives a task its faults, from within, at the step that they name."""

from __future__ import annotations

import os
import pathlib
import threading
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.events import step_counts
from tfplugin.faults import acts
from tfplugin.faults import environment
from tfplugin.faults import language

tf1 = tf.compat.v1

_POLL_SECS = 0.0005
_NOT_A_NUMBER = float('nan')


class FaultHook(tf1.train.SessionRunHook):
  """Meets a task that trains with the faults that are meant for it.

  The chief meets the parameter servers and the evaluator, too, which make no
  steps: by a signal to their process on the same machine. Each fault comes
  once; that it comes is in the task's events first, where the next process of
  the task finds it.
  """

  def __init__(self, faults: Sequence[language.Fault], log: event_log.EventLog,
               run: str = ''):
    """Keeps the faults that this task has to see to.

    Args:
      faults: Of the whole run.
      log: The events of this task.
      run: The name of the run; faults of another one are forgotten.

    Raises:
      ValueError: the task has no file of events, and so no memory.
    """
    if log.path is None:
      raise ValueError('Faults need a `model_dir` on this machine, where it is '
                       'remembered which have come. Received: none. Set '
                       '`RunConfig(model_dir=...)`.')
    self._log = log
    self._run = run
    # .../events/<task>.jsonl
    self._model_dir = str(log.path.parent.parent)
    done = {(e.details.get('run'), e.details.get('fault'))
            for e in event_files.read_file(log.path).events
            if e.name == 'injecting'}
    self._waiting = [f for f in faults if self._is_mine(f) and
                     (run, str(f)) not in done]
    self._slow_secs = 0.0
    # How long the last step took that exchanged, and when one began.
    self._exchange_secs = 0.0
    self._began: Optional[float] = None
    self._has_saved = threading.Event()
    self._step = None
    self._exchanges = None
    self._make_nan = None

  def _is_mine(self, fault: language.Fault) -> bool:
    if fault.task.partition(':')[0] in language.TRAINING_JOBS:
      return fault.task == self._log.task
    return self._log.task == 'chief:0'

  def begin(self) -> None:
    """Finds the step, and makes what the faults need of the graph."""
    self._step = tf1.train.get_global_step()
    self._log.observer = self._see
    if self._are_waiting(language.EXCHANGING):
      self._exchanges = _next_step_exchanges()
    if any(f.kind == 'nan' for f in self._waiting):
      variable = next(v for v in tf1.trainable_variables()
                      if v.dtype.base_dtype.is_floating)
      self._make_nan = tf1.assign(
          variable, variable.read_value() * _NOT_A_NUMBER).op

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Brings what comes before the first step."""
    del coord
    self._bring(language.START, session)

  def before_run(self, run_context) -> None:
    """Brings, in the middle of the step, what comes in an exchange."""
    if self._slow_secs:
      time.sleep(self._slow_secs)
    if not self._are_waiting(language.EXCHANGING):
      return
    session = run_context.session
    if self._exchanges is None or session.run(self._exchanges):
      self._began = time.monotonic()
      step = int(session.run(self._step))
      _later(lambda: self._bring(language.EXCHANGING, None, step),
             time.sleep, self._exchange_secs / 2)

  def after_run(self, run_context, run_values) -> None:
    """Brings what comes at a step."""
    del run_values
    if self._began is not None:
      self._exchange_secs = time.monotonic() - self._began
      self._began = None
    if self._are_waiting(language.STEP):
      session = run_context.session
      self._bring(language.STEP, session, int(session.run(self._step)))

  def end(self, session: tf1.Session) -> None:
    """Brings what comes at the end."""
    self._bring(language.END, session)
    self._log.observer = None

  def _are_waiting(self, phase: str) -> bool:
    return any(fault.phase == phase for fault in self._waiting)

  def _see(self, event: record.Event) -> None:
    """Brings, while a checkpoint is written, what comes then."""
    if event.name != 'saving' or not self._are_waiting(language.SAVING):
      return
    if event.kind == record.END:
      self._has_saved.set()
      return
    self._has_saved.clear()
    # Here, in the main thread, what no other can do to it.
    self._bring(language.SAVING, None, event.step, is_signal=False)
    _later(lambda: self._bring(language.SAVING, None, event.step),
           self._wait_for_a_file)

  def _wait_for_a_file(self) -> None:
    """Waits until a checkpoint is written in part, or is whole."""
    while not self._has_saved.is_set() and not any(
        pathlib.Path(self._model_dir).glob('*_temp*')):
      time.sleep(_POLL_SECS)

  def _bring(self, phase: str, session: Optional[tf1.Session],
             step: Optional[int] = None, is_signal: bool = True) -> None:
    """Lets the faults of a phase come that are due.

    Args:
      phase: The phase.
      session: The session; None while it is at work.
      step: The global step, where it is known.
      is_signal: Whether those that are signals come, too.
    """
    for fault in [f for f in self._waiting if f.phase == phase]:
      is_early = fault.step is not None and step < fault.step
      if is_early or language.KINDS[fault.kind].is_signal and not is_signal:
        continue
      self._waiting.remove(fault)
      self._log.write('injecting', fault=str(fault), run=self._run, step=step)
      self._act(fault, session)

  def _act(self, fault: language.Fault, session: Optional[tf1.Session]) -> None:
    if fault.kind == 'slow':
      self._slow_secs = fault.secs
    elif fault.kind == 'nan':
      session.run(self._make_nan)
    elif fault.kind == 'raise':
      raise acts.InjectedError(f'This was asked for: {fault}')
    elif fault.kind == 'damage':
      acts.damage(self._model_dir)
    else:
      acts.send(fault, os.getpid() if fault.task == self._log.task else
                acts.process_of(fault.task, self._model_dir))


def _next_step_exchanges() -> Optional[tf.Tensor]:
  """Returns whether the next step exchanges; None where every step does."""
  counts = step_counts.of(tf1.get_default_graph())
  due = [tf.equal((v.read_value() + 1) % counts[v.op.name].every, 0)
         for v in [*tf1.local_variables(), *tf1.global_variables()]
         if v.op.name in counts and
         counts[v.op.name].name == step_counts.EXCHANGES]
  return tf.reduce_any(tf.stack(due)) if due else None


def _later(bring: Callable[[], None], wait: Callable[..., None],
           *args) -> None:
  """Waits, and brings, while the main thread is at work."""

  def run():
    wait(*args)
    bring()

  threading.Thread(target=run, daemon=True).start()


def hooks() -> list[FaultHook]:
  """Returns the hook that this task needs; none in a run without faults."""
  faults, run = environment.read()
  return [FaultHook(faults, event_log.current(), run)] if faults else []
