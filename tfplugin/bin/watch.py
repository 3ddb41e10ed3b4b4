# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-watch: shows the current state of each task of a run.

    tfplugin-watch RUN_DIR

RUN_DIR is the model_dir of the run; its processes may be on other machines that
share the directory. A terminal gets a bar and a table that change; a file or a
pipe gets lines every 10 s. It waits for the first event of a run that has just
started. It ends when every training task has done its work, was stopped or is
lost, or by Ctrl-C. It waits for the tasks of a launch that has just started in
a RUN_DIR with earlier sessions.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from collections.abc import Mapping

from absl import app
from absl import flags

from tfplugin.bin import command_line
from tfplugin.bin import run_files
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import task_states
from tfplugin.bin.results import live_display
from tfplugin.bin.results import task_table
from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import record

HEADINGS = ('task', 'step', 'steps/s', 'figures', 'state')
# A log file or a pipe gets lines at this interval.
_PLAIN_EVERY_SECS = 10.0
_LIVE_EVERY_SECS = 0.5
_SERVING = ('ps', 'evaluator')
_COMMANDS = command_line.CommandLine((
    command_line.Group('How it is shown', (
        flags.DEFINE_bool('once', False, 'Shows the run once and ends.'),
        flags.DEFINE_bool('live', True, 'Whether a terminal shows a progress '
                          'bar and a live table; needs the package rich.'),
    ), is_common=True),
))


class Watch(task_states.TaskStates):
  """The states of a run's tasks, wherever its processes are."""

  def __init__(self, run_dir: str):
    """Finds the tasks in `run_dir`; a run that starts has none yet."""
    super().__init__(run_dir, from_start=True)
    self._run_dir = run_dir
    self.update()

  def is_over(self, now: float) -> bool:
    """Returns whether every training task is done, was stopped or is lost.

    A task that is silent when the chief is done is lost: the chief waits for
    the others. `now` is in seconds since the epoch.
    """
    training = {task: state for task, state in self.states.items()
                if task.partition(':')[0] not in _SERVING}
    if not training:
      return False
    chief = training[min(training)]  # By name the chief is the first.
    launched = run_files.launch_start(self._run_dir)
    if launched is not None and (chief.last is None or
                                 chief.last.time < launched):
      return False
    # No task of a launch that has ended restarts.
    is_chief_done = _is_done(chief, now) or (
        launched == run_files.LAUNCH_ENDED and _is_silent(chief, now) and
        chief.last is not None and chief.last.name == 'dying')
    return is_chief_done and all(
        _is_done(state, now) or _is_silent(state, now)
        for state in training.values())

  @property
  def steps(self) -> int | None:
    """The global step at which the run ends; None if it is not known."""
    # A user's own program does not write its options.
    return (event_files.read_options(self._run_dir).get('steps') or
            task_states.goal(self.states))


def rows(states: Mapping[str, task_states.State],
         now: float) -> list[tuple[str, ...]]:
  """Returns the lines of the table at a time, without the headings."""
  return [(task, '' if state.step is None else str(state.step),
           _rate(state),
           ', '.join(map(' '.join, task_table.figures_of(state).items())),
           state.describe(now))
          for task, state in states.items()]


def _is_done(state: task_states.State, now: float) -> bool:
  if state.joined is not None and state.end:
    return True
  if state.last is None or state.last.name in ('ended', 'stopped'):
    return state.last is not None
  # With `EventsHook` alone another training may follow.
  return record.is_done(state.last) and _is_silent(state, now)


def _is_silent(state: task_states.State, now: float) -> bool:
  return (state.last is None or
          state.secs_since(state.last, now) >= task_table.SILENT_SECS)


def wait_for_events(run_dir: str, watch: Watch, say: Callable[[str], None],
                    once: bool) -> None:
  """Waits for the first event of a run, and says so.

  Raises `ValueError` for a missing directory, and with `once` for no events.
  """
  error = event_files.no_events(run_dir)
  if not watch.states:
    if once or not pathlib.Path(run_dir).is_dir():
      raise error
    say(f'{error} Waits for the first event; Ctrl-C ends the program.')
  while not watch.states:
    time.sleep(_LIVE_EVERY_SECS)
    watch.update()


def follow(watch: Watch, say: Callable[[str], None], once: bool) -> None:
  """Shows a line for each task, once or every 10 s until the run is over."""
  while True:
    watch.update()
    for line in run_summary.aligned(
        [HEADINGS, *rows(watch.states, clock.now())]):
      say(line)
    if once or watch.is_over(clock.now()):
      return
    time.sleep(_PLAIN_EVERY_SECS)


def follow_live(watch: Watch, terminal) -> None:
  """Shows a bar and a table that change, until the run is over."""
  with live_display.LiveDisplay(terminal, watch.steps, is_kept=True) as shown:
    while True:
      watch.update()
      is_last = watch.is_over(clock.now())
      shown.update(watch.states, is_last=is_last, steps=watch.steps)
      if is_last:
        return
      time.sleep(_LIVE_EVERY_SECS)


def _rate(state: task_states.State) -> str:
  rate = state.details.get('steps_per_sec')
  return '' if rate is None else f'{rate:.1f}'


def main(argv: list[str]) -> None:
  """Watches the run that the argument names. Ctrl-C does not end the run."""
  if len(argv) != 2:
    raise app.UsageError('Takes one path, RUN_DIR: the model_dir of a run. '
                         f'Received: {" ".join(argv[1:]) or "none"}')
  try:
    _show(argv[1], **_COMMANDS.values())
  except KeyboardInterrupt:
    raise KeyboardInterrupt('tfplugin-watch ended, not the run') from None


def _show(run_dir: str, once: bool, live: bool) -> None:
  """Shows the run in lines, or on a terminal with a bar and a table."""
  say = command_line.say
  watch = Watch(run_dir)
  wait_for_events(run_dir, watch, say, once)
  terminal = live_display.find_terminal()
  if live and not once and terminal is not None:
    follow_live(watch, terminal)
  else:
    follow(watch, say, once)


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
