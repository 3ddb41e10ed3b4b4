# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A part of a page that is written from a file of results."""

from __future__ import annotations

import json
import pathlib
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable

from benchmarks import machine

PAGE = machine.ROOT / 'docs/speed.md'
_NONE = '-'

Results = Mapping[str, Any]


class PagePart:
  """The part between two marks, and the file that it is written from."""

  def __init__(self, name: str, title: str, not_yet: str,
               lines: Callable[[Results], Iterable[str]],
               page: pathlib.Path = PAGE, part: str = ''):
    """Says what the part is.

    Args:
      name: Of the file in benchmarks/results.
      title: The part's heading; empty: none.
      not_yet: What it says without the file.
      lines: Makes its lines of the results.
      page: Where it is.
      part: Its name, where a page has several of one file.
    """
    self.page = page
    file = f'benchmarks/results/{name}.json'
    self.results = machine.ROOT / file
    name = ', '.join(filter(None, [file, part]))
    self._marks = (f'<!-- From {name}: begin -->', f'<!-- From {name}: end -->')
    self.not_yet = not_yet
    self._title, self._lines = title, lines

  def section(self, results: Results | None) -> str:
    """Returns the part.

    Args:
      results: What the benchmark wrote, or None.
    """
    lines = [self.not_yet] if results is None else self._lines(results)
    begin, end = self._marks
    heading = [f'## {self._title}', ''] if self._title else []
    return '\n'.join([begin, *heading, *lines, end])

  def read(self) -> Results | None:
    """Returns the results that there are, or None."""
    if not self.results.exists():
      return None
    return json.loads(self.results.read_text())

  def written(self, page: str, results: Results | None) -> str:
    """Returns a page with the part written anew.

    Args:
      page: A text with the two marks.
      results: What the benchmark wrote, or None.
    """
    begin, end = self._marks
    before, rest = page.split(begin)
    return before + self.section(results) + rest.split(end)[1]

  def write(self, results: Results | None = None) -> None:
    """Writes the part of the page.

    Args:
      results: Are written to their file before; None takes those that are
        there.
    """
    if results is not None:
      self.results.parent.mkdir(exist_ok=True)
      self.results.write_text(json.dumps(results, indent=1) + '\n')
    self.page.write_text(self.written(self.page.read_text(), self.read()))


def table(corner: str, columns: Sequence[str],
          rows: Iterable[tuple[str, Sequence[str | None]]],
          ) -> Iterator[str]:
  """Yields the lines of a table, after an empty one.

  Args:
    corner: What stands at the top left.
    columns: The heads of the others.
    rows: The name of each, and its cells; what is empty becomes `-`.
  """
  yield from ('', f'| {corner} | {" | ".join(columns)} |',
              '|---' * (len(columns) + 1) + '|')
  for name, values in rows:
    yield f'| {name} | {" | ".join(value or _NONE for value in values)} |'


def with_spread(every: Sequence[float],
                middle: Callable[[Sequence[float]], float] = statistics.median,
                ) -> str | None:
  """Returns the middle with the least and the largest; None of none.

  Args:
    every: The figures.
    middle: What is said of them.
  """
  return f'{middle(every):.4g} ({min(every):.4g} to {max(every):.4g})' \
      if every else None
