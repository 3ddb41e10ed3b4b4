# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Balance of a run's batches, and the global steps of each session."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from tfplugin.events import record
from tfplugin.report import panel
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

# Events that have the newest step; the event of a death has an old one.
_TELL = ('training', 'saving', 'injecting')
_NO_END, _SESSION = 'no last event', 'session lost'


class Steps(NamedTuple):
  """The global steps of a run.

  `first` and `last` are None without a step. `kept` has the steps of each
  session that the last step contains. `undone` has the steps before a restore
  to an older step. Both are by the session that made them.
  """

  first: int | None
  last: int | None
  kept: collections.Counter[int]
  undone: collections.Counter[int]


def read_steps(run: run_data.RunData) -> Steps:
  """Returns the global steps in the events of a run."""
  first, top, session = None, 0, 1
  # The stretches that are kept: the session, the first and the last step.
  made: list[tuple[int, int, int]] = []
  undone = collections.Counter()
  # This task restores for all; the step that another one reads may be late.
  restorer = (run.training_tasks or [None])[0]
  for event in run.reading.events:
    is_restore = event.task == restorer and _restores(event)
    if event.step is None or not (is_restore or event.name in _TELL):
      continue
    first = event.step if first is None else first
    if event.step > top:
      # An earlier session made the steps that a session begins with.
      made.append((session if is_restore else event.session, top, event.step))
    if event.step > top or is_restore:
      top = event.step
      undone.update(_undo(made, top))
    session = event.session
  kept = collections.Counter()
  for owner, begin, end in made:
    kept[owner] += max(end, first) - max(begin, first)
  return Steps(first, None if first is None else top, kept, undone)


def _undo(made: list[tuple[int, int, int]], top: int) -> dict[int, int]:
  """Cuts the stretches off at `top`; returns the steps beyond, by session."""
  undone = collections.Counter()
  while made and made[-1][2] > top:
    owner, begin, end = made.pop()
    undone[owner] += end - max(begin, top)
    if begin < top:
      made.append((owner, begin, top))
  return undone


def _restores(event: record.Event) -> bool:
  """Returns whether a session was just made, from a checkpoint or from a ps."""
  return (event.name == 'starting' or event.name == 'coming_back' and
          event.details.get('what') == 'session')


def balance(run: run_data.RunData, steps: Steps) -> dict[str, Any] | None:
  """Returns the balance of the batches, or None if the events lack the unit.

    made + unreported = kept + dropped + undone

  Tasks that were lost made the `unreported` batches after their last events. If
  no task was lost, `undone` is exact; if nothing was undone, `unreported` is.
  Otherwise both are the least possible. `lost` has the cause of each unfinished
  step.
  """
  tasks = {task: run.events_of[task] for task in run.training_tasks}
  trained = [event for events in tasks.values() for event in events
             if event.name == 'training']
  units = {event.details.get('step_counts') for event in trained
           if event.kind == record.BEGIN}
  if len(units) != 1 or None in units:
    return None
  unit, = units
  key = 'num_exchanges' if unit == 'exchanges' else 'num_steps'
  made, dropped = ({task: series.total(events, name)
                    for task, events in tasks.items()}
                   for name in (key, 'num_dropped'))
  lost = {task: list(_unfinished(events)) for task, events in tasks.items()}
  sizes = collections.Counter(session for session, _ in {
      (event.session, event.task) for event in trained})

  def batches_of(number: Mapping[int, int]) -> int:
    # A step that all tasks of a session make together has a batch of each.
    return sum(count * (sizes[session] if unit == 'rounds' else 1)
               for session, count in number.items())

  kept = batches_of(steps.kept)
  surplus = sum(made.values()) - sum(dropped.values()) - kept
  undone = max(surplus, batches_of(steps.undone))
  return {
      'unit': unit, 'made': made, 'unreported': undone - surplus,
      'kept': kept, 'dropped': dropped, 'undone': undone,
      'lost': {task: ends for task, ends in lost.items() if ends}}


def _unfinished(events: Sequence[record.Event]) -> Iterator[str]:
  """Yields the cause of each step of a task that may be unfinished."""
  for event in events:
    if event.details.get('what') == 'session':
      yield _SESSION
  for own in record.by_process(events):
    kinds = [event.kind for event in own if event.name == 'training']
    if kinds and kinds[-1] != record.END:
      details = own[-1].details
      yield str(details.get('fault') or details.get('error') or _NO_END)


def tables(section: Mapping[str, Any] | None) -> list[panel.Table]:
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
  return '; '.join(
      f'{task}: {end}' + (f' ({number} times)' if number > 1 else '')
      for (task, end), number in collections.Counter(ends).items())


def _by_task(numbers: Mapping[str, int]) -> str:
  return ', '.join(f'{task} {number:,}' for task, number in numbers.items()
                   if number)
