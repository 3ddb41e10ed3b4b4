# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table at the end of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Optional

from tfplugin.bin import status


@dataclasses.dataclass(frozen=True)
class Result:
  """What a run came to.

  Attributes:
    title: What ran.
    accuracy: On the held-out rows at the end; None without an evaluation.
    first_step: The global step at which the run began.
    last_step: The global step at which it ended.
    wall_secs: How long it took, the start of the processes included.
    roles: The last status of each role by name; None for a role that made no
      step.
    start_secs: How long each role took from the start to its first step.
    lost: How each worker that was lost ended, by name.
    figures: What the wrapper did, by name.
    files: Where the files are, by what they are.
  """

  title: str
  accuracy: Optional[float]
  first_step: int
  last_step: int
  wall_secs: float
  roles: Mapping[str, Optional[status.Status]]
  start_secs: Mapping[str, float]
  lost: Mapping[str, str]
  figures: Mapping[str, float]
  files: Mapping[str, str]


def rows(result: Result) -> list[tuple[str, str]]:
  """Returns the table's rows: what, and how much."""
  accuracy = ('not evaluated' if result.accuracy is None
              else f'{result.accuracy:.2%} of the held-out rows')
  steps = f'{result.last_step}'
  if result.first_step:
    steps += f' (resumed at {result.first_step})'
  table = [('accuracy', accuracy), ('global step', steps),
           ('wall time', f'{result.wall_secs:.1f} s')]
  for name, last in result.roles.items():
    table.append((name, _role(name, last, result)))
  table += [(name, f'{value:.6g}') for name, value in result.figures.items()]
  return table


def show(result: Result) -> None:
  """Prints the table and where the files are."""
  # Imported here: it is an extra.
  from rich import console
  from rich import table as table_lib
  table = table_lib.Table(title=result.title, show_header=False,
                          title_justify='left')
  for row in rows(result):
    table.add_row(*row)
  terminal = console.Console()
  terminal.print(table)
  for name, path in result.files.items():
    # Paths are not broken into lines: they are there to be copied.
    terminal.print(f'{name}: {path}', soft_wrap=True, markup=False,
                   highlight=False)


def _role(name: str, last: Optional[status.Status], result: Result) -> str:
  text = 'no step'
  if last is not None:
    text = f'{last.local_steps} step{"s" if last.local_steps != 1 else ""}'
  if name in result.start_secs:
    text += f', the first after {result.start_secs[name]:.1f} s'
  if name in result.lost:
    text += f'; lost: it {result.lost[name]}'
  return text
