# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A bar and a table of the tasks below a program's lines, on a terminal."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Optional

from tfplugin.bin.results import task_table

_EVERY_SECS = 0.5
# Below that the bar has no words.
_WIDE = 60


def find_terminal(no_color: Optional[bool] = None):
  """Returns the terminal that output goes to, for `LiveDisplay`.

  Args:
    no_color: Whether it is to have no colours; None: as NO_COLOR says.

  Returns:
    A console of `rich`. None where lines are all that can be shown: output goes
    to a file or a pipe, the terminal cannot move its cursor (TERM=dumb) or has
    ASCII alone, or `rich`, an extra, is not installed.
  """
  if not sys.stdout.isatty() or importlib.util.find_spec('rich') is None:
    return None
  # Imported here: it is an extra.
  from rich import console
  terminal = console.Console(no_color=no_color)
  can_show = terminal.is_interactive and not terminal.is_dumb_terminal
  return terminal if can_show and not terminal.options.ascii_only else None


class Lines:
  """Stands for `LiveDisplay` where there are lines alone."""

  def __init__(self, say: Callable[[str], None]):
    """Says nothing yet.

    Args:
      say: Shows a line.
    """
    self._say = say

  def __enter__(self) -> Lines:
    return self

  def __exit__(self, *unused_error) -> None:
    pass

  def stop(self) -> None:
    """Does nothing."""

  def say(self, *lines: str) -> None:
    """Shows lines."""
    for line in lines:
      self._say(line)

  def update(self, lines: Sequence[task_table.Line], is_last: bool = False,
             steps: Optional[int] = None) -> None:
    """Does nothing."""


class LiveDisplay:
  """Lines that stay, and below them what changes; a context manager.

  Nothing but `say` and `update` writes, in the thread that calls them: a signal
  finds no other one in the middle of a line.
  """

  def __init__(self, terminal, steps: Optional[int] = None,
               is_kept: bool = False,
               clock: Callable[[], float] = time.monotonic):
    """Shows nothing yet.

    Args:
      terminal: See `find_terminal`.
      steps: The global step at which the run ends; None: not known, and until
        `update` tells it the bar says how long the run has been looked at
        instead of how long it will take.
      is_kept: Whether the last table stays when the context is left.
      clock: Tells the time in seconds.
    """
    from rich import live
    self._terminal = terminal
    self._is_kept = is_kept
    self._next = float('-inf')
    self._clock = clock
    self._steps = steps
    self._bar = _make_bar(terminal, steps, clock)
    self._live = live.Live(
        '', console=terminal, auto_refresh=False, transient=not is_kept,
        # Else errors would go to the terminal when they go to a file.
        redirect_stderr=sys.stderr.isatty())

  def __enter__(self) -> LiveDisplay:
    self._live.start()
    return self

  def __exit__(self, *unused_error) -> None:
    self.stop()

  def stop(self) -> None:
    """Gives the terminal back; lines are still said."""
    self._live.stop()

  def say(self, *lines: str) -> None:
    """Shows lines that stay, with the colours that are in them."""
    # Imported here: it is an extra.
    from rich import text
    if lines:  # At once: below each print the table is drawn anew.
      said = text.Text('\n').join(map(text.Text.from_ansi, lines))
      self._terminal.print(said, soft_wrap=True)

  def update(self, lines: Sequence[task_table.Line],
             is_last: bool = False, steps: Optional[int] = None) -> None:
    """Shows the newest lines of the tasks, twice a second at most.

    Args:
      lines: See `task_table.make_lines`.
      is_last: Whether they are shown in any case.
      steps: The global step at which the run ends, where it was not known.
    """
    from rich import console
    is_due = is_last or self._clock() >= self._next
    if not is_due or not self._live.is_started:
      return
    self._next = self._clock() + _EVERY_SECS
    if self._steps is None and steps is not None:
      self._steps = steps
      self._bar = _make_bar(self._terminal, steps, self._clock)
    width, height = self._terminal.size
    bar = self._draw_bar(task_table.step_of(lines), width)
    # The lines of the program have the other half.
    room = height - 3 if self._is_kept else height // 2
    # Where the terminal shows ^C: at the end of a full line that would be the
    # next one, and all that is erased a line too low.
    margin = [] if is_last else ['']
    self._live.update(console.Group(
        bar, task_table.draw(lines, width, room), *margin), refresh=True)

  def _draw_bar(self, step: int, width: int):
    bar, = self._bar.tasks
    self._bar.update(
        bar.id, completed=step if bar.total is None else min(step, bar.total))
    words = {'rate': '', 'word': ''}
    if width >= _WIDE:
      words['word'] = 'so far' if bar.total is None else 'left'
      if bar.speed is not None:
        words['rate'] = f'{bar.speed:.1f} steps/s'
    self._bar.update(bar.id, **words)
    return self._bar.get_renderable()


def _make_bar(terminal, steps: Optional[int], clock: Callable[[], float]):
  from rich import progress
  total = '' if steps is None else f'/{steps}'
  bar = progress.Progress(
      progress.TextColumn('step {task.completed:.0f}' + total),
      progress.BarColumn(bar_width=None),
      progress.TextColumn('{task.fields[rate]}'),
      progress.TimeElapsedColumn() if steps is None
      else progress.TimeRemainingColumn(),
      progress.TextColumn('{task.fields[word]}'),
      console=terminal, get_time=clock, expand=True)
  bar.add_task('', total=steps, rate='', word='')
  return bar
