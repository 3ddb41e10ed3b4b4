# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Log of a task's events: one line of JSON each, written at once.

A process that is killed loses no written event: a line is one write to an
append-only file. A write that fails does not disturb training. A warning
reports the first failure.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import pathlib
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import process
from tfplugin.events import record

# The number of the session, set by a launcher.
SESSION_VARIABLE = 'TFPLUGIN_SESSION'


class EventLog:
  """The events of one task, `model_dir/events/<task>.jsonl`.

  Attributes:
    task: The task, e.g. `worker:0`.
    last_step: The newest global step among the events; None before the first.
    saved_step: The global step of the newest checkpoint; None before the first.
    stopped_by: The name of the signal that stopped the task; None without one.
    observer: Called with each event after it is written; None: no observer.
  """

  def __init__(self, model_dir: str | os.PathLike | None, task: str,
               pid: int | None = None, session: int | None = None):
    """Stores the settings; the first write opens the file.

    Args:
      model_dir: The directory of the run. It must be on a file system of this
        machine. For others, such as `gs://...` or `hdfs://...`, nothing is
        written, and a warning says so.
      task: The task, e.g. `worker:0`.
      pid: The id of the process that the events belong to; None: this process.
      session: The session that they belong to; None: see the property.
    """
    self.task = task
    self._pid = pid or os.getpid()
    self.last_step: int | None = None
    self.saved_step: int | None = None
    self.stopped_by: str | None = None
    self.observer: Callable[[record.Event], None] | None = None
    self._model_dir = model_dir and os.fspath(model_dir)
    self._file: int | None = None
    self._session = session
    self._has_warned = False
    # Whether the last line is incomplete: ours, or a killed process's.
    self._is_torn = False

  @property
  def path(self) -> pathlib.Path | None:
    """The path of the file; None if `model_dir` can hold no file."""
    if not self._model_dir or '://' in self._model_dir:
      return None
    return event_files.path_of(self._model_dir, self.task)

  def write(self, name: str, kind: str = record.INSTANT,
            **details: Any) -> None:
    """Writes an event.

    Args:
      name: One of the names in docs/events.md.
      kind: `'begin'`, `'end'` or `'instant'`.
      **details: Values of JSON; `step` is the global step.
    """
    self._note(name, details)
    event = record.Event(clock.now(), self._pid, self.task, name, kind,
                         details, self.session)
    if self.path is None:
      self._warn('it is no directory of this machine')
      return
    try:
      self._append(record.encode(event))
    except OSError as e:
      self._warn(e.strerror)
    if self.observer is not None:
      self.observer(event)

  @contextlib.contextmanager
  def span(self, name: str, **details: Any) -> Iterator[None]:
    """Writes an event at the begin and at the end of the context.

    Args:
      name: See `write`.
      **details: Details of the event at the begin; see `write`.

    Yields:
      Nothing.
    """
    self.write(name, record.BEGIN, **details)
    try:
      yield
    finally:
      self.write(name, record.END)

  def last_events(self) -> tuple[record.Event, ...]:
    """Returns the last events in the file, including earlier processes'."""
    return event_files.last_events(self.path) if self.path else ()

  @property
  def session(self) -> int:
    """The number of the session: how often the run was started.

    The launcher of the run sets it. Without a launcher, a task whose last event
    is `ended` or `stopped` begins the next session; a process that trains again
    continues its own. A task that failed or was killed continues its session.
    """
    if self._session is None:
      self._session = int(os.environ.get(SESSION_VARIABLE) or 0)
    if not self._session:
      earlier = self.last_events()
      is_new = not earlier or _was_over(earlier[-1]) and (
          earlier[-1].name != 'training' or earlier[-1].pid != self._pid)
      self._session = (earlier[-1].session if earlier else 0) + is_new
    return self._session

  def close(self) -> None:
    """Closes the file; `write` opens it again."""
    if self._file is not None:
      os.close(self._file)
    self._file = None

  def _note(self, name: str, details: Mapping[str, Any]) -> None:
    """Stores the details that the last event of the task will repeat."""
    # The step of a sample was read before the update.
    step = None if name == 'sampling' else details.get('step')
    self.last_step = self.last_step if step is None else step
    if name == 'saving' and step is not None:
      self.saved_step = step
    self.stopped_by = (details.get('signal') if name == 'stopping' else
                       self.stopped_by)

  def _append(self, line: bytes) -> None:
    if self._file is None:
      self.path.parent.mkdir(parents=True, exist_ok=True)
      self._file = os.open(self.path,
                           os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
      size = os.fstat(self._file).st_size
      self._is_torn = bool(size) and os.pread(self._file, 1, size - 1) != b'\n'
    if self._is_torn:
      line = b'\n' + line
    # A full disk cuts a line off.
    self._is_torn = os.write(self._file, line) != len(line)
    if self._is_torn:
      self._warn('no space is left')

  def _warn(self, why: str | None) -> None:
    if self._model_dir and not self._has_warned:
      logging.getLogger('tensorflow').warning(
          'The events of %s cannot be written to %s: %s. Training continues '
          'without them.', self.task, self._model_dir, why)
    self._has_warned = True


_current: contextvars.ContextVar[EventLog | None] = contextvars.ContextVar(
    'tfplugin_event_log', default=None)


def current() -> EventLog | None:
  """Returns the log of the current task; None outside `recording`."""
  return _current.get()


def write(name: str, kind: str = record.INSTANT, **details: Any) -> None:
  """Writes an event of the current task; does nothing outside `recording`."""
  if current() is not None:
    current().write(name, kind, **details)


def span(name: str, **details: Any) -> contextlib.AbstractContextManager:
  """Writes the begin and end of the context, if in `recording`."""
  log = current()
  return contextlib.nullcontext() if log is None else log.span(name, **details)


@contextlib.contextmanager
def recording(model_dir: str | os.PathLike | None,
              task: str, **details: Any) -> Iterator[EventLog]:
  """Records the start, the end and the failure of a task around a context.

  Yields the log, which is `current()` inside. `details` are of `starting`.
  """
  log = EventLog(model_dir, task)
  token = _current.set(log)
  try:
    earlier = log.last_events()
    if earlier:
      clock.not_before(earlier[-1].time)
    # A task that was stopped alone restarts in the same session.
    if earlier and (not _was_over(earlier[-1]) or
                    earlier[-1].name == 'stopped' and
                    earlier[-1].session == log.session):
      steps = [e.step for e in earlier if e.step is not None]
      log.write('coming_back', what='process',
                step=steps[-1] if steps else None,
                away_secs=round(clock.now() - earlier[-1].time, 3))
    log.write('starting', record.BEGIN, **process.describe(), **details)
    yield log
    log.write('ended', step=log.last_step)
  except BaseException as e:
    _write_last_words(log, e)
    raise
  finally:
    _current.reset(token)
    log.close()


def _was_over(event: record.Event) -> bool:
  """Returns whether a task with this last event had ended its work."""
  return event.name == 'stopped' or record.is_done(event)


def _write_last_words(log: EventLog, error: BaseException) -> None:
  """Writes that the task stopped on request, or the error that ends it."""
  by = log.stopped_by
  if by is None and isinstance(error, KeyboardInterrupt):
    by = 'SIGINT'  # Before the session no hook handles it.
  if by and isinstance(error, (KeyboardInterrupt, SystemExit)):
    log.write('stopped', signal=by, step=log.last_step,
              saved_step=log.saved_step)
  else:
    log.write('dying', error=type(error).__name__, message=str(error)[:1000],
              step=log.last_step)
