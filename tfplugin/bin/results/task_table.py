# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Table with a line for each task, fitted to the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from tfplugin.bin.processes import task_states

# A training task writes an event every 5 s; after this time three are missing.
SILENT_SECS = 15.0
# The least widths of the columns `task` and `state`. On a wide terminal they
# have the n-th part of it.
_MIN_TASK, _PART_TASK = 8, 5
_MIN_DOES, _PART_DOES = 6, 6
# Shorter headings for some figures.
_HEADINGS = {'elastic distance': 'distance',
             'fraction of rows clipped': 'clipped',
             'fraction of rows at the bound': 'at bound'}
# Figures that have the same names in events.
_FIGURES = ('staleness', 'distance')
# Jobs that write no events while they serve, and their activity.
_SERVES = {'ps': 'serving', 'evaluator': 'evaluating'}


class Line(NamedTuple):
  """A line of the table.

  Attributes:
    numbers: By heading, the most important first.
    does: The task's activity in a few words.
  """

  task: str
  numbers: Mapping[str, str]
  does: str


def make_lines(states: Mapping[str, task_states.State], now: float,
               ends: Mapping[str, str] | None = None) -> list[Line]:
  """Returns a line for each task; `ends` has known ends of tasks, by name."""
  ends = ends or {}
  return [
      Line(task, _numbers(state), ends.get(task) or _does(task, state, now))
      for task, state in states.items()
  ]


def step_of(lines: Sequence[Line]) -> int:
  """Returns the newest global step of all tasks; 0 before the first."""
  return max((int(line.numbers['step'] or 0) for line in lines), default=0)


def figures_of(state: task_states.State) -> dict[str, str]:
  """Returns the newest figures and counts of a wrapper by their headings."""
  figures = {name: state.details[name] for name in _FIGURES
             if name in state.details}
  counts = dict(state.details)
  if state.status is not None:
    figures.update((_HEADINGS.get(name, name), value)
                   for name, value in state.status.figures.items())
    counts.update((f'num_{name}', count)
                  for name, count in state.status.counts.items())
  return {**{name: f'{value:.3g}' for name, value in figures.items()},
          **_counted(counts)}


def draw(lines: Sequence[Line], width: int, height: int, wraps: bool = False):
  """Returns a table of `rich`, at most `width` columns by `height` lines.

  Numbers that do not fit are left out, the least important first. Tasks that do
  not fit are counted. With `wraps` a long state has further lines, beyond
  `height`; without, its end is left out.
  """
  from rich import table as table_lib
  from rich import text
  longest = max((len(line.task) for line in lines), default=0)
  task_width = min(longest, max(_MIN_TASK, width // _PART_TASK))
  headings = _fitting(
      lines, width - task_width - max(_MIN_DOES, width // _PART_DOES) - 1)
  # One space between columns, for terminals of 40 columns.
  table = table_lib.Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
  table.add_column('task', width=task_width)
  for heading in headings:
    table.add_column(heading, justify='right', no_wrap=True)
  table.add_column('state')
  room = max(1, height - 1)
  # The line that counts the others needs room, too.
  shown = lines if len(lines) <= room else lines[:room - 1]
  for line in shown:
    cells = [line.task, *(line.numbers.get(h, '') for h in headings)]
    table.add_row(*(text.Text(cell, no_wrap=True, overflow='ellipsis')
                    for cell in cells),
                  text.Text(line.does, no_wrap=not wraps, overflow='ellipsis'))
  if len(shown) < len(lines):
    table.add_row(f'{len(lines) - len(shown)} more')
  return table


def _fitting(lines: Sequence[Line], room: int) -> list[str]:
  """Returns the headings of the numbers that fit into `room` columns."""
  headings = list(dict.fromkeys(h for line in lines for h in line.numbers))

  def needed():
    widths = [max(map(len, (h, *(line.numbers.get(h, '') for line in lines))))
              for h in headings]
    return sum(widths) + len(widths)

  while headings and needed() > room:
    headings.pop()
  return headings


def _numbers(state: task_states.State) -> dict[str, str]:
  status = state.status
  step, rate = state.step, state.details.get('steps_per_sec')
  if status is not None and (state.last is None or
                             status.time >= state.last.time):
    step = status.step
  figures = {'step': '' if step is None else str(step),
             'steps/s': '' if rate is None else f'{rate:.1f}'}
  figures.update(figures_of(state))
  if status is not None:
    figures['loss'] = f'{status.loss:.4f}'
  return figures


def _counted(details: Mapping[str, float]) -> dict[str, str]:
  figures = {}
  made = sum(details.get(name, 0) for name in ('num_dropped', 'num_applied'))
  if made:
    figures['dropped'] = f'{details.get("num_dropped", 0) / made:.1%}'
  if 'num_exchanges' in details:
    figures['exchanges'] = str(details['num_exchanges'])
  return figures


def _does(task: str, state: task_states.State, now: float) -> str:
  last = state.last
  if state.end:
    return state.end
  if last is None:
    return 'no events yet'
  serves = _SERVES.get(task.partition(':')[0])
  # It serves the tasks whose end it waits for.
  if serves and last.name in ('starting', 'waiting') and (
      'starting' not in state.open):
    return serves
  if state.waits_on:
    return state.describe(now)
  secs = state.secs_since(last, now)
  is_silent = secs >= SILENT_SECS and not serves
  return ', '.join(filter(None, (
      state.doing, state.arrival,
      f'silent for {secs:.0f} s' if is_silent else '')))
