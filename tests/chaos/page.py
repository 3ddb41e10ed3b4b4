# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/chaos.md: what became of each cell of the matrix."""

from __future__ import annotations

import pathlib
import statistics
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Optional

from tests.chaos import cells
from tests.chaos import play
from tests.chaos import program

PATH = pathlib.Path(__file__).parents[2] / 'docs' / 'chaos.md'

_TEXT = """\
# Chaos: {number} runs with a fault

Written by `make chaos`, which plays {number} runs on one machine. Each has a
chief, a worker, one parameter server or two, and one [fault](faults.md) of one
task, the victim. If the victim is an evaluator, the run has one, too. A run
has {steps} steps of {step_ms:.0f} ms, saves
every {save_steps} steps, and restarts failed tasks after 0.1 s. Some of the
runs are among the tests: every two values of two columns occur together there.
They restart as by default, but for `raise` and `nan`, which are errors of the
program: with `--restart=always`. Three runs at a time shared two CPUs with
other work, so the times are upper bounds.

After every fault:

- the run ends by itself at its last step, or with an error that names a NaN in
  a shared variable;
- the global step has fallen by at most {save_steps}, the steps between two
  saves; by at most {damage_steps} if the newest checkpoint was damaged;
- every batch is applied, dropped by the rule, undone by a restore, or in a step
  in which its task was lost. The servers count no batch twice, and miss none.
  Runs that end with a NaN are left out: nothing is saved after it;
- the newest checkpoint is whole and finite, and has the weights of its step;
- no process, temporary file or lock is left.

"Held" counts the runs for which all of this holds. `cut`, `damage` and so on
are [kinds of faults](faults.md). Times are medians and, behind the dash, the
longest. "Steps lost" is the largest number of any run. A parameter server and
an evaluator make no steps: they are back when the chief makes a step. A start
takes {start} in these runs, because TensorFlow is imported already. Only
`upgrade` imports another version: TensorFlow 2.21 in place of 2.15, on two CPUs
with other work.

| fault | runs | held | others make steps, s | victim trains, s | steps lost |
| --- | --- | --- | --- | --- | --- |
{kinds}

## Minutes of faults

{minutes}

{published}

## Hours of faults

{hours}

## Workers that join and leave

{joins}

## Every run

The same for each run, with its number of parameter servers. "-": no step came
after the fault. "The error is named" is a run that ends with an error that
names a NaN, as it must.

| form | fault | ps | held | others, s | back, s | lost |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""

# Parts that other programs write, or people.
MINUTES, HOURS, JOINS = 'make soak', 'make soak, hours', 'joins'
_PUBLISHED = 'published'
_Outcomes = Mapping[cells.Cell, Optional[play.Outcome]]


def summary(outcome: play.Outcome) -> str:
  """Returns an outcome in a line."""
  end = 'ended with an error' if outcome.error else 'ended well'
  return (f'others {_secs(outcome.resume_secs)} s, back '
          f'{_secs(outcome.back_secs)} s, {outcome.lost_steps} steps lost, '
          f'{end} at step {outcome.last_step}')


def render(outcomes: _Outcomes) -> str:
  """Returns the page; the parts of other programs stay as they are."""
  names = sorted({(cell.kind, cell.role) for cell in outcomes})
  return _TEXT.format(
      minutes=_kept(MINUTES), hours=_kept(HOURS), joins=_kept(JOINS),
      published=_kept(_PUBLISHED),
      number=len(outcomes), steps=cells.STEPS,
      step_ms=1000 * program.STEP_SECS, save_steps=program.SAVE_STEPS,
      damage_steps=2 * program.SAVE_STEPS,
      start='half a second',
      kinds='\n'.join(_row_of_kind(kind, role, outcomes)
                      for kind, role in names),
      rows='\n'.join(_row(cell, outcomes[cell])
                     for cell in sorted(outcomes, key=lambda c: c.name)))


def read(page: str) -> _Outcomes:
  """Returns what a page tells of the cells of the matrix.

  Args:
    page: Of `render`.
  """
  rows = {tuple(row[:3]): row[3:] for row in (
      line.strip('| ').split(' | ') for line in page.splitlines())}
  return {cell: _read_row(rows[key]) for cell in cells.matrix() if (
      key := (cell.form, cell.fault, str(cell.num_ps))) in rows}


def _read_row(row: list[str]) -> play.Outcome | None:
  if row[0] == '**no**':
    return None
  held, *times, lost = row
  return play.Outcome(
      *(None if secs == '-' else float(secs) for secs in times), int(lost),
      stride=0, last_step=0, error='' if held == 'yes' else held)


def with_part(page: str, name: str, text: str) -> str:
  """Returns a page whose part of this name is `text` from now on.

  Args:
    page: Of `render`.
    name: `MINUTES`, `HOURS` or `JOINS`.
    text: What stands between the marks of this part.
  """
  begin, end = _marks(name)
  before, rest = page.split(begin)
  return f'{before}{begin}\n{text.strip()}\n{end}{rest.split(end)[1]}'


def _kept(name: str) -> str:
  begin, end = _marks(name)
  return begin + PATH.read_text().split(begin)[1].split(end)[0] + end


def _marks(name: str) -> tuple[str, str]:
  return f'<!-- {name}: begin -->', f'<!-- {name}: end -->'


def _row_of_kind(kind: str, role: str, outcomes: _Outcomes) -> str:
  of_kind = [outcome for cell, outcome in outcomes.items()
             if (cell.kind, cell.role) == (kind, role)]
  held = [outcome for outcome in of_kind if outcome]
  return (f'| {kind} {role} | {len(of_kind)} | {len(held)} | '
          f'{_spread(o.resume_secs for o in held)} | '
          f'{_spread(o.back_secs for o in held)} | '
          f'{max([o.lost_steps for o in held], default=0)} |')


def _row(cell: cells.Cell, outcome: play.Outcome | None) -> str:
  if outcome is None:
    return f'| {cell.form} | {cell.fault} | {cell.num_ps} | **no** | | | |'
  return (f'| {cell.form} | {cell.fault} | {cell.num_ps} | '
          f'{"the error is named" if outcome.error else "yes"} | '
          f'{_secs(outcome.resume_secs)} | {_secs(outcome.back_secs)} | '
          f'{outcome.lost_steps} |')


def _spread(values: Iterable[float | None]) -> str:
  known = [value for value in values if value is not None]
  if not known:
    return ''
  return f'{statistics.median(known):.2f} - {max(known):.2f}'


def _secs(value: float | None) -> str:
  return '-' if value is None else f'{value:.2f}'
