# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what a task does: one line of JSON each, at once.

A process that is killed loses nothing that was written: a line is one write to
a file that is only appended to. Training is never worse for it: where nothing
can be written a warning says so, once.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import pathlib
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import Optional
from typing import Union

from absl import logging

from tfplugin.events import event_files
from tfplugin.events import process
from tfplugin.events import record

# The end of a file, in which the last events are looked for.
_TAIL_BYTES = 65536


class EventLog:
  """The events of one task, `model_dir/events/<task>.jsonl`.

  Attributes:
    task: The task, e.g. `worker:0`.
    last_step: The newest global step among the events; None before.
    observer: Called with each event once it is written; None: nobody.
  """

  def __init__(self, model_dir: Union[str, os.PathLike, None], task: str):
    """Opens nothing yet.

    Args:
      model_dir: The directory of the run. In one that is no directory of this
        machine's file systems, as `gs://...` or `hdfs://...`, nothing is
        written, and a warning says so.
      task: The task, e.g. `worker:0`.
    """
    self.task = task
    self.last_step: Optional[int] = None
    self.observer: Optional[Callable[[record.Event], None]] = None
    self._model_dir = model_dir and os.fspath(model_dir)
    self._file: Optional[int] = None
    self._has_warned = False
    # Whether a line was written in part: by us, or by one that was killed.
    self._is_torn = False

  @property
  def path(self) -> Optional[pathlib.Path]:
    """The file; None where none can be."""
    if not self._model_dir or '://' in self._model_dir:
      return None
    return event_files.path_of(self._model_dir, self.task)

  def write(self, name: str, kind: str = record.INSTANT,
            **details: Any) -> None:
    """Writes an event.

    Args:
      name: One of `record.NAMES`.
      kind: One of `record.KINDS`.
      **details: Values of JSON; `step` is the global step.
    """
    if details.get('step') is not None:
      self.last_step = details['step']
    event = record.Event(time.time(), os.getpid(), self.task, name, kind,
                         details)
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
    """Writes the begin and the end of what the context does.

    Args:
      name: See `write`.
      **details: See `write`; of the begin.

    Yields:
      Nothing.
    """
    self.write(name, record.BEGIN, **details)
    try:
      yield
    finally:
      self.write(name, record.END)

  def last_events(self) -> tuple[record.Event, ...]:
    """Returns the last events in the file, of whichever process."""
    try:
      size = os.path.getsize(self.path or '')
    except OSError:
      return ()
    return event_files.read_file(self.path, max(size - _TAIL_BYTES, 0)).events

  def close(self) -> None:
    """Closes the file; `write` opens it again."""
    if self._file is not None:
      os.close(self._file)
    self._file = None

  def _append(self, line: bytes) -> None:
    if self._file is None:
      self.path.parent.mkdir(parents=True, exist_ok=True)
      self._file = os.open(self.path,
                           os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
      size = os.fstat(self._file).st_size
      self._is_torn = bool(size) and os.pread(self._file, 1, size - 1) != b'\n'
    if self._is_torn:
      line = b'\n' + line
    # What is left of a line when the disk is full is torn.
    self._is_torn = os.write(self._file, line) != len(line)
    if self._is_torn:
      self._warn('no space is left')

  def _warn(self, why: Optional[str]) -> None:
    if self._model_dir and not self._has_warned:
      logging.warning('The events of %s cannot be written to %s: %s. Training '
                      'goes on without.', self.task, self._model_dir, why)
    self._has_warned = True


_current: contextvars.ContextVar[Optional[EventLog]] = contextvars.ContextVar(
    'tfplugin_event_log', default=None)


def current() -> Optional[EventLog]:
  """Returns the log of the task that runs here; None outside `recording`."""
  return _current.get()


def write(name: str, kind: str = record.INSTANT, **details: Any) -> None:
  """Writes an event of the task that runs here, if it is recorded."""
  if current() is not None:
    current().write(name, kind, **details)


@contextlib.contextmanager
def span(name: str, **details: Any) -> Iterator[None]:
  """Writes begin and end, likewise."""
  with contextlib.ExitStack() as stack:
    if current() is not None:
      stack.enter_context(current().span(name, **details))
    yield


@contextlib.contextmanager
def recording(model_dir: Union[str, os.PathLike, None],
              task: str, **details: Any) -> Iterator[EventLog]:
  """Records the task that the context runs: its start, its end and its death.

  Args:
    model_dir: See `EventLog`.
    task: See `EventLog`.
    **details: More about the start.

  Yields:
    The log, which is `current()` inside the context.
  """
  log = EventLog(model_dir, task)
  token = _current.set(log)
  try:
    earlier = log.last_events()
    if earlier and earlier[-1].name != 'ended':
      steps = [e.step for e in earlier if e.step is not None]
      log.write('coming_back', what='process',
                step=steps[-1] if steps else None,
                away_secs=round(time.time() - earlier[-1].time, 3))
    log.write('starting', record.BEGIN, **process.describe(), **details)
    yield log
    log.write('ended', step=log.last_step)
  except BaseException as e:
    log.write('dying', error=type(e).__name__, message=str(e)[:1000],
              step=log.last_step)
    raise
  finally:
    _current.reset(token)
    log.close()
