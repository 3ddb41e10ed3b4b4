# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Balance of a run's batches: made by tasks, and kept, dropped or undone."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tfplugin.events import record
from tfplugin.report import panel
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

_NO_END, _SESSION = 'no last event', 'session lost'


def measure(run: run_data.RunData,
            steps: Mapping[str, Optional[int]]) -> Optional[dict[str, Any]]:
  """Returns both sides of the balance, or None if the events lack the unit.

    made + unreported = kept + dropped + undone

  `steps` has the first and last global step, and the repeated ones. Tasks that
  were lost made the `unreported` batches after their last events. If no task
  was lost, `undone` is exact; if nothing was undone, `unreported` is. Otherwise
  both are the least possible. `lost` has the cause of each unfinished step.
  """
  tasks = {task: run.events_of[task] for task in run.training_tasks}
  units = {event.details.get('step_counts') for events in tasks.values()
           for event in events if event.name == 'training' and
           event.kind == record.BEGIN}
  if len(units) != 1 or None in units:
    return None
  unit, = units
  key = 'num_exchanges' if unit == 'exchanges' else 'num_steps'
  made, dropped = ({task: series.total(events, name)
                    for task, events in tasks.items()}
                   for name in (key, 'num_dropped'))
  lost = {task: list(_lost(events)) for task, events in tasks.items()}
  # A step that all tasks make together has a batch of each.
  share = len(tasks) if unit == 'rounds' else 1
  kept = (steps['last_step'] - steps['first_step']) * share
  surplus = sum(made.values()) - sum(dropped.values()) - kept
  undone = max(surplus, steps['redone_steps'] * share)
  return {
      'unit': unit, 'made': made, 'unreported': undone - surplus,
      'kept': kept, 'dropped': dropped, 'undone': undone,
      'lost': {task: ends for task, ends in lost.items() if ends}}


def _lost(events: Sequence[record.Event]) -> Iterator[str]:
  """Yields the cause of each step of a task that may be unfinished."""
  processes = {}
  for event in events:
    processes.setdefault(event.pid, []).append(event)
    if event.details.get('what') == 'session':
      yield _SESSION
  for own in processes.values():
    kinds = [event.kind for event in own if event.name == 'training']
    if kinds and kinds[-1] != record.END:
      details = own[-1].details
      yield str(details.get('fault') or details.get('error') or _NO_END)


def tables(section: Optional[Mapping[str, Any]]) -> list[panel.Table]:
  """Returns the balance as rows; nothing without one."""
  if section is None:
    return []
  made, dropped, lost = (section[key] for key in ('made', 'dropped', 'lost'))
  ends = [(task, end) for task, of_task in lost.items() for end in of_task]
  gone = [pair for pair in ends if pair[1] != _SESSION]
  rows = [
      ('made, as the tasks reported', sum(made.values()), _by_task(made)),
      ('+ made after the last report of a lost task', section['unreported'],
       _named(gone)),
      ('= kept: counted by the global step', section['kept'], ''),
      ('+ dropped as stale', sum(dropped.values()), _by_task(dropped)),
      ('+ undone by a restore, or not finite', section['undone'], ''),
      ('perhaps lost, one in each step that a fault ended', len(ends),
       _named(ends))]
  return [panel.Table(
      ('exchanges' if section['unit'] == 'exchanges' else 'batches', 'number',
       'tasks'), [(label, f'{number:,}', text)
                  for label, number, text in rows])]


def _named(ends: Sequence[tuple[str, str]]) -> str:
  return '; '.join(f'{task}: {end}' for task, end in ends)


def _by_task(numbers: Mapping[str, int]) -> str:
  return ', '.join(f'{task} {number:,}' for task, number in numbers.items()
                   if number)
