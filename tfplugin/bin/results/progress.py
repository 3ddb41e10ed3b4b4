# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The progress of a run: a line now and then, or a table on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from tfplugin.bin.processes import status
from tfplugin.bin.processes import task_states
from tfplugin.bin.results import live_display
from tfplugin.bin.results import task_table

# A log file or a pipe gets a line at this interval.
_PLAIN_EVERY_SECS = 10.0
_RATE_WINDOW_SECS = 3.0


class Progress:
  """Display of step, speed, loss and figures; a context manager."""

  def __init__(self, steps: int, terminal=None):
    """Shows nothing yet.

    `steps` is the global step at which the run ends. `terminal` comes from
    `live_display.find_terminal`; None: a line now and then.
    """
    self._live = (None if terminal is None
                  else live_display.LiveDisplay(terminal, steps))
    self._steps = steps
    self._history: list[tuple[float, int]] = []
    self._last_plain = time.monotonic()

  def __enter__(self) -> Progress:
    if self._live is not None:
      self._live.__enter__()
    return self

  def __exit__(self, *unused_error) -> None:
    if self._live is not None:
      self._live.stop()

  def update(self, states: Mapping[str, task_states.State],
             ends: Mapping[str, str]) -> None:
    """Shows the newest figures.

    `ends` has, by name, the ends of tasks that do not run.
    """
    if self._live is not None:
      self._live.update(
          task_table.make_lines(states, time.time(), ends))
      return
    known = {name: state.status for name, state in states.items()
             if state.status is not None}
    newest = max(known.values(), key=lambda s: s.time, default=None)
    if newest is not None:
      self._history.append((newest.time, newest.global_step))
    rate = self._rate()
    if time.monotonic() - self._last_plain >= _PLAIN_EVERY_SECS:
      self._last_plain = time.monotonic()
      self.say(make_line(known, self._steps, rate))

  def say(self, message: str) -> None:
    """Prints a line that stays."""
    if self._live is not None:
      self._live.say(message)
    else:
      print(message, file=sys.stdout, flush=True)

  def _rate(self) -> float:
    """Returns the global steps per second of the last few seconds."""
    while (len(self._history) > 2 and
           self._history[-1][0] - self._history[1][0] > _RATE_WINDOW_SECS):
      self._history.pop(0)
    if len(self._history) < 2:
      return 0.0
    first_time, first_step = self._history[0]
    time_, step = self._history[-1]
    return (step - first_step) / max(time_ - first_time, 1e-3)


def make_line(statuses: Mapping[str, status.Status], steps: int,
              rate: float) -> str:
  """Returns the progress line, with `rate` in global steps per second.

  `statuses` has the training roles that made a step; `steps` is the last step.
  """
  if not statuses:
    return 'starting: no step yet'
  newest = max(statuses.values(), key=lambda s: s.time)
  step = min(max(s.global_step for s in statuses.values()), steps)
  parts = [f'step {step}/{steps}', f'{rate:.0f} steps/s',
           f'loss {newest.loss:.4f}']
  combined = status.combine(statuses.values())
  parts += [f'{name} {value:.6g}' for name, value in combined.items()]
  return ' | '.join(parts)
