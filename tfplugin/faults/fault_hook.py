# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that injects the faults of a task from within, at their steps."""

from __future__ import annotations

import os
import pathlib
import threading
import time
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.distribute import per_graph
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.faults import acts
from tfplugin.faults import language
from tfplugin.ops import elastic

tf1 = tf.compat.v1

_POLL_SECS = 0.0005
_NOT_A_NUMBER = float('nan')


class FaultHook(tf1.train.SessionRunHook):
  """Hook that injects faults into a task that trains.

  The chief also injects the faults of parameter servers and the evaluator,
  which make no steps: by a signal to their process on the same machine. Each
  fault occurs once. It is written to the task's events before it occurs, and
  the next process of the task reads them.
  """

  def __init__(self, faults: Sequence[language.Fault], log: event_log.EventLog,
               run: str = ''):
    """Selects this task's faults of the `run` that have not occurred yet."""
    if log.path is None:
      raise ValueError('Faults need a `model_dir` on this machine, where the '
                       'faults that have occurred are recorded. Received: '
                       'none. Set `RunConfig(model_dir=...)`.')
    self._log = log
    self._run = run
    # .../events/<task>.jsonl
    self._model_dir = str(log.path.parent.parent)
    done = {(e.details.get('run'), e.details.get('fault'))
            for e in event_files.read_file(log.path).events
            if e.name == 'injecting'}
    self._waiting = [f for f in faults if self._is_mine(f) and
                     (run, str(f)) not in done]
    self._slow_secs = self._save_secs = 0.0
    # The duration of the last step with an exchange, and the start of one.
    self._exchange_secs = 0.0
    self._began: float | None = None
    self._has_saved = threading.Event()
    self._step = None
    self._exchanges = None
    self._make_nan = None

  def _is_mine(self, fault: language.Fault) -> bool:
    if fault.task.partition(':')[0] in language.TRAINING_JOBS:
      return fault.task == self._log.task
    return self._log.task == 'chief:0'

  def begin(self) -> None:
    """Finds the global step, and builds the ops that the faults need."""
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
    """Injects the faults before the first step."""
    del coord
    self._bring(language.START, session)

  def before_run(self, run_context) -> None:
    """Injects the faults of an exchange in the middle of the step."""
    if self._slow_secs:
      time.sleep(self._slow_secs)
    if not self._are_waiting(language.EXCHANGING):
      return
    session = run_context.session
    if self._exchanges is None or session.run(self._exchanges):
      self._began = time.monotonic()
      step = int(session.run(self._step))
      timer = threading.Timer(self._exchange_secs / 2, self._bring,
                              [language.EXCHANGING, None, step])
      timer.daemon = True
      timer.start()

  def after_run(self, run_context, run_values) -> None:
    """Injects the faults of a step."""
    del run_values
    if self._began is not None:
      self._exchange_secs = time.monotonic() - self._began
      self._began = None
    if self._are_waiting(language.STEP):
      session = run_context.session
      self._bring(language.STEP, session, int(session.run(self._step)))

  def end(self, session: tf1.Session) -> None:
    """Injects the faults at the end."""
    self._bring(language.END, session)
    self._log.observer = None

  def _are_waiting(self, phase: str) -> bool:
    return any(fault.phase == phase for fault in self._waiting)

  def _see(self, event: record.Event) -> None:
    """Injects the faults of a save while a checkpoint is written."""
    if event.name != 'saving':
      return
    if event.kind == record.BEGIN:
      time.sleep(self._save_secs)
    if not self._are_waiting(language.SAVING):
      return
    if event.kind == record.END:
      self._has_saved.set()
      return
    self._has_saved.clear()
    # Faults that are no signals, in the main thread: no other can raise in it.
    self._bring(language.SAVING, None, event.step, is_signal=False)
    threading.Thread(target=self._bring_into_save, args=[event.step],
                     daemon=True).start()

  def _bring_into_save(self, step: int | None) -> None:
    """Injects the faults once a checkpoint is written in part, or is whole."""
    while not self._has_saved.is_set() and not any(
        pathlib.Path(self._model_dir).glob('*_temp*')):
      time.sleep(_POLL_SECS)
    self._bring(language.SAVING, None, step)

  def _bring(self, phase: str, session: tf1.Session | None,
             step: int | None = None, is_signal: bool = True) -> None:
    """Injects a phase's due faults; `session` is None while it runs a step."""
    for fault in [f for f in self._waiting if f.phase == phase]:
      is_early = fault.step is not None and step < fault.step
      if is_early or language.KINDS[fault.kind].is_signal and not is_signal:
        continue
      self._waiting.remove(fault)
      self._log.write('injecting', fault=str(fault), run=self._run, step=step)
      self._act(fault, session)

  def _act(self, fault: language.Fault, session: tf1.Session | None) -> None:
    if fault.kind == 'slow':
      self._slow_secs = fault.secs
    elif fault.kind == 'slow_save':
      self._save_secs = fault.secs
    elif fault.kind == 'nan':
      session.run(self._make_nan)
    elif fault.kind == 'raise':
      raise acts.InjectedError(f'Injected fault: {fault}')
    elif fault.kind == 'clock':
      acts.move_clock(fault.secs)
    elif fault.kind == 'readonly':
      acts.make_readonly(self._model_dir, fault.secs)
    elif fault.kind == 'damage':
      acts.damage(self._model_dir)
    else:
      acts.send(fault, os.getpid() if fault.task == self._log.task else
                acts.process_of(fault.task, self._model_dir))


def _next_step_exchanges() -> tf.Tensor | None:
  """Returns whether the next step exchanges; None where every step does."""
  counts = per_graph.of(tf1.get_default_graph()).counts
  due = [elastic.is_exchange_due(v.read_value(), counts[v.op.name].every)
         for v in [*tf1.local_variables(), *tf1.global_variables()]
         if v.op.name in counts and
         counts[v.op.name].name == per_graph.EXCHANGES]
  return tf.reduce_any(tf.stack(due)) if due else None


def hooks() -> list[FaultHook]:
  """Returns the hook that this task needs; none in a run without faults."""
  faults, run = language.read_environment()
  return [FaultHook(faults, event_log.current(), run)] if faults else []
