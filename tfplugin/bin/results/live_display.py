# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Display of a run: lines alone, or a bar and a table below them."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Union

from tfplugin.bin.processes import task_states
from tfplugin.bin.results import task_table
from tfplugin.events import clock
from tfplugin.events import record

_EVERY_SECS = 0.5
# A log file or a pipe gets a line of progress at this interval.
_PLAIN_EVERY_SECS = 10.0
# A bar of fewer columns has no words.
_WIDE = 60


def find_terminal(no_color: bool | None = None):
  """Returns the console of `rich` for `LiveDisplay`; None for lines alone.

  It is None if output goes to a file or a pipe, or without `rich`, an extra. It
  is also None if the terminal cannot move its cursor (TERM=dumb) or has only
  ASCII. `no_color` None follows NO_COLOR.
  """
  if not sys.stdout.isatty() or importlib.util.find_spec('rich') is None:
    return None
  # Imported late: `rich` is an extra.
  from rich import console
  terminal = console.Console(no_color=no_color)
  can_show = terminal.is_interactive and not terminal.is_dumb_terminal
  return terminal if can_show and not terminal.options.ascii_only else None


class Lines:
  """Substitute for `LiveDisplay`: lines, some of them about the progress."""

  def __init__(self, say: Callable[[str], None], steps: int | None = None):
    """Shows nothing yet; `say` shows a line.

    `steps` is the global step at which the run ends; None: no line of progress.
    """
    self._say = say
    self._steps = steps
    self._last_said = time.monotonic()
    # The newest sample at the line before.
    self._last: record.Sample | None = None

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

  def update(self, states: Mapping[str, task_states.State],
             *unused_args, **unused_kwargs) -> None:
    """Shows the newest figures every ten seconds, with a line of progress."""
    known = {name: state.status for name, state in states.items()
             if state.status is not None}
    newest = max(known.values(), key=lambda s: s.time, default=None)
    self._last = self._last or newest
    if self._steps is not None and (
        time.monotonic() - self._last_said >= _PLAIN_EVERY_SECS):
      self._last_said = time.monotonic()
      rate = 0.0 if newest is None else (
          newest.step - self._last.step) / max(newest.time - self._last.time,
                                               1e-3)
      self.say(progress_line(known, self._steps, rate))
      self._last = newest


def progress_line(statuses: Mapping[str, record.Sample], steps: int,
                  rate: float) -> str:
  """Returns the progress line, with `rate` in global steps per second."""
  if not statuses:
    return 'starting: no step yet'
  newest = max(statuses.values(), key=lambda s: s.time)
  step = min(max(s.step for s in statuses.values()), steps)
  parts = [f'step {step}/{steps}', f'{rate:.0f} steps/s',
           f'loss {newest.loss:.4f}']
  combined = task_states.combine(statuses.values())
  parts += [f'{name} {value:.6g}' for name, value in combined.items()]
  return ' | '.join(parts)


class LiveDisplay:
  """Lines that stay, above a bar and a table that change; a context manager.

  Only `say` and `update` write, in the calling thread. A signal thus never
  interrupts another thread in the middle of a line.
  """

  def __init__(self, terminal, steps: int | None = None,
               is_kept: bool = False):
    """Shows nothing yet.

    `steps` is the global step at which the run ends. With None the bar shows
    the elapsed instead of the remaining time, until `update` has a number.
    `is_kept` leaves the last table on the terminal after the context.
    """
    from rich import live
    self._terminal = terminal
    self._is_kept = is_kept
    self._next = float('-inf')
    self._steps = steps
    self._bar = _make_bar(terminal, steps)
    self._live = live.Live(
        '', console=terminal, auto_refresh=False, transient=not is_kept,
        # Otherwise errors would go to the terminal when they belong in a file.
        redirect_stderr=sys.stderr.isatty())

  def __enter__(self) -> LiveDisplay:
    self._live.start()
    return self

  def __exit__(self, *unused_error) -> None:
    self.stop()

  def stop(self) -> None:
    """Releases the terminal; `say` still shows lines."""
    self._live.stop()

  def say(self, *lines: str) -> None:
    """Shows lines that stay, with the ANSI colours in them."""
    # Imported late: `rich` is an extra.
    from rich import text
    if lines:  # One print, because each one draws the table again.
      said = text.Text('\n').join(map(text.Text.from_ansi, lines))
      self._terminal.print(said, soft_wrap=True)

  def update(self, states: Mapping[str, task_states.State],
             ends: Mapping[str, str] | None = None, is_last: bool = False,
             steps: int | None = None) -> None:
    """Shows the newest states of the tasks, at most twice a second.

    `ends` has, by name, the ends of tasks that do not run. `is_last` shows the
    states in any case. `steps` is the global step at which the run ends, if it
    was not known before.
    """
    from rich import console
    is_due = is_last or self._terminal.get_time() >= self._next
    if not is_due or not self._live.is_started:
      return
    self._next = self._terminal.get_time() + _EVERY_SECS
    if self._steps is None and steps is not None:
      self._steps = steps
      self._bar = _make_bar(self._terminal, steps)
    lines = task_table.make_lines(states, clock.now(), ends)
    width, height = self._terminal.size
    bar = self._draw_bar(task_table.step_of(lines), width)
    # The program's lines have the other half.
    room = height - 3 if self._is_kept else height // 2
    # An empty line for the terminal's ^C. After a full line it would begin the
    # next line, and `rich` would erase everything one line too low.
    margin = [] if is_last else ['']
    self._live.update(console.Group(
        bar, task_table.draw(lines, width, room, wraps=is_last), *margin),
                      refresh=True)

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


def _make_bar(terminal, steps: int | None):
  from rich import progress
  total = '' if steps is None else f'/{steps}'
  bar = progress.Progress(
      progress.TextColumn('step {task.completed:.0f}' + total),
      progress.BarColumn(bar_width=None),
      progress.TextColumn('{task.fields[rate]}'),
      progress.TimeElapsedColumn() if steps is None
      else progress.TimeRemainingColumn(),
      progress.TextColumn('{task.fields[word]}'),
      console=terminal, expand=True)
  bar.add_task('', total=steps, rate='', word='')
  return bar


Display = Union[Lines, LiveDisplay]
