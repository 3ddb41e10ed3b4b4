# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Title, date and outcome of a run, and of each of its sessions."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.events import record
from tfplugin.report.reading import run_data
from tfplugin.report.reading import scalars

_FINISHED = 'finished'
_FAILED = 'failed'
_OPEN = 'still running, or was killed'


def measure(run: run_data.RunData,
            speed: Mapping[str, Any]) -> dict[str, Any]:
  """Returns title, outcome and sessions of a run, given its section `speed`."""
  sessions = [_session(number, events, run)
              for number, events in run.sessions.items()]
  faults = sum(e.name == 'injecting' for e in run.reading.events)
  accuracy = _accuracy(run)
  parts = [sessions[-1]['outcome']]
  if accuracy is not None:
    parts.append(f'accuracy {accuracy:.1%}')
  if speed['goodput'] is not None:
    parts.append(f'goodput {speed["goodput"]:.0%}')
  if faults:
    parts.append(f'{faults} fault{"s" if faults > 1 else ""}')
  return {
      'title': _title(run),
      'text': ', '.join(parts),
      'accuracy': accuracy,
      'num_faults': faults,
      'start_time': run.start,
      'sessions': sessions,
  }


def _title(run: run_data.RunData) -> str:
  technique = run.technique_in(math.inf)
  if not technique:
    return 'A run'
  model = run.options.get('model')
  return f'{technique}{f" with {model}" if model else ""}'


def _accuracy(run: run_data.RunData) -> float | None:
  """Returns the last accuracy of an evaluation."""
  last = [(curves['accuracy'].times[-1], curves['accuracy'].values[-1])
          for directory, curves in run.scalars.items()
          if scalars.is_evaluation(directory) and 'accuracy' in curves]
  return max(last)[1] if last else None


def _session(number: int, events: Sequence[record.Event],
             run: run_data.RunData) -> dict[str, Any]:
  # The last step that an ending task knows is no step of the run.
  steps = [e.step for e in events
           if e.step is not None and e.name in ('training', 'saving')]
  return {
      'number': number,
      'technique': run.technique_in(number) or '',
      'start_time': run.date_of(events[0]),
      'secs': events[-1].time - events[0].time,
      'first_step': steps[0] if steps else None,
      'last_step': max(steps, default=None),
      'outcome': _outcome(events, max(steps, default=None),
                          run.training_tasks),
  }


def _outcome(events: Sequence[record.Event], step: int | None,
             tasks: Sequence[str]) -> str:
  """Returns how the tasks that train ended a session."""
  last = {e.task: e for e in events if e.task in tasks} or {
      e.task: e for e in events}
  names = {e.name for e in last.values()}
  chief = next((last[task] for task in tasks if task in last),
               next(iter(last.values())))
  at = '' if step is None else f' at step {step:,}'
  # Its failure stops the others, as does a failure that the launcher reported.
  if chief.name == 'dying':
    return _FAILED + at
  # A worker that joined may have been stopped alone.
  if 'stopped' in names and not record.is_done(chief):
    saved = [e.details.get('saved_step') for e in last.values()]
    return record.describe_stop(
        step, max((s for s in saved if s is not None), default=None))
  return (_FINISHED if record.is_done(chief) else _OPEN) + at


def date(seconds: float) -> str:
  """Returns a time as a date in the local time zone."""
  return time.strftime('%Y-%m-%d %H:%M', time.localtime(seconds))
