# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets one run meet fault after fault, and tells of it in docs/chaos.md.

  python -m tests.chaos.soak [--minutes 20] [--per_hour 150] [--seed 1]

A chief and three workers train with two parameter servers, first for some
minutes without a fault, which tells how many steps they make in a second, and
then with faults that come by chance: each task, and each kind of end or stop,
is as likely as another. Processes begin as users' do, and nothing is touched by
hand. With `--directory` a run of fewer minutes continues.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import dataclasses
import pathlib
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from tests.chaos import page
from tests.chaos import play
from tests.chaos import resources
from tfplugin import events
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.faults import language

FORM = 'elastic_average'
NUM_WORKERS, NUM_PS = 4, 2
STOP_SECS = 5.0
# Long enough that two cores are for the most part free: a process that starts
# takes seconds of them, and would slow those beside it.
STEP_SECS = 0.1
# Of all workers: 2.5 s.
SAVE_STEPS = 100
# Of a run whose resources are told.
_LONG_SECS = 3600.0
# In none of a run's own pauses is there no step for so long.
_BETWEEN_PARTS_SECS = 120.0
# The first faults wait until everybody trains.
_FIRST_STEP = 100
_TRAINS = ('chief:0', *(f'worker:{i}' for i in range(NUM_WORKERS - 1)))
_TASKS = (*_TRAINS, *(f'ps:{i}' for i in range(NUM_PS)))
# Which stretches are in a row.
_ROWS = {
    'a worker': lambda stretch: stretch.job == 'worker',
    'the chief': lambda stretch: stretch.job == 'chief',
    'a parameter server ends':
        lambda stretch: stretch.job == 'ps' and stretch.kind != 'stop',
    'a parameter server is stopped':
        lambda stretch: stretch.job == 'ps' and stretch.kind == 'stop',
    'all': lambda stretch: True,
    'all, without stops of parameter servers':
        lambda stretch: (stretch.job, stretch.kind) != ('ps', 'stop'),
}
_KINDS = ('kill', 'terminate', f'stop for {STOP_SECS:g} s')

_TEXT = """\
Written by `make soak ARGS='{arguments}'`: a chief, {num_workers} workers and
{num_ps} parameter servers on one machine, `{form}`, steps of {step_ms:.0f} ms.
{number} faults in {wall:.0f} s, {rate:.0f} an hour: SIGKILL, SIGTERM, or a
stop of {stop:g} s, each for a task chosen at random out of {num_tasks}.

| victim | faults | goodput | a victim trains again, s: median, longest |
| --- | --- | --- | --- |
{rows}

Goodput is a share of the possible steps: {clean:.1f} a second of all workers,
as without a fault. It counts the steps that were made and kept from one fault
to the next. The time in which a worker is dead or suspended does not count
against it. If a parameter server fails, all tasks wait until it is back, and
[the chief restores its
variables](reliability.md#a-parameter-server-is-lost). There is a save every
{save} steps. The launcher keeps a spare process. At the end
{part} of {num_trains} workers trained. The global step fell by at most {fall}.
"""
_HOURS = """\
Written by `make soak ARGS='{arguments}'` with TensorFlow
{tensorflow}: the same run with fewer faults, so that a process lives long.
{number} faults in {wall:.0f} s, {rate:.0f} an hour. Starts from the
checkpoint of an earlier part: {num_continued}. At the end, at step {last_step},
{part} of {num_trains} workers trained. The global step fell by at most {fall}.

| victim | faults | goodput | a victim trains again, s: median, longest |
| --- | --- | --- | --- |
{rows}

{resources}
"""


@dataclasses.dataclass(frozen=True)
class Stretch:
  """The time from one fault to the next, or to the end.

  Attributes:
    job: Of the victim: chief, worker or ps.
    kind: Of the fault: kill, terminate or stop.
    secs: How long it is.
    num_steps: Made in it and kept; less than 0 where more were lost.
    away_secs: How long workers were dead or stopped in it, added up.
    back_secs: After how long the victim trained again, or the chief after a
      fault of a parameter server; None: not before the end.
  """

  job: str
  kind: str
  secs: float
  num_steps: int
  away_secs: float
  back_secs: float | None


@dataclasses.dataclass(frozen=True)
class Soaked:
  """What a run came to.

  Attributes:
    wall_secs: From when all workers have made a step to the end.
    num_steps: The steps made and kept in that time.
    stretches: One for each fault.
    fall: How far the global step fell at most.
    num_training: How many workers made a step in the last seconds.
    last_step: Of the run.
    tasks: The task of each process, and when the process began to be that task.
    lost: When parameter servers ended.
    num_continued: How often the run was continued.
    tensorflow: The versions of its tasks.
  """

  wall_secs: float
  num_steps: int
  stretches: Sequence[Stretch]
  fall: int
  num_training: int
  last_step: int
  tasks: Mapping[int, tuple[str, float]]
  lost: Sequence[float]
  num_continued: int
  tensorflow: str


def goodput(stretches: Sequence[Stretch], clean: float) -> float:
  """Returns the part of the steps that could be made, and were, and are kept.

  Args:
    stretches: One or more.
    clean: Steps a second of all workers without a fault.

  Example:
    >>> goodput([Stretch('worker', 'kill', 10.0, 35, 4.0, 4.0)], 4.0)
    0.9722222222222222
  """
  able_secs = sum(s.secs - s.away_secs / NUM_WORKERS for s in stretches)
  return sum(s.num_steps for s in stretches) / (clean * able_secs)


def faults_of(seed: int, num_steps: int, per_fault: float) -> str:
  """Returns faults in the language of docs/faults.md.

  Args:
    seed: Of the chances.
    num_steps: Of the run.
    per_fault: After how many steps one comes, on average.

  Example:
    >>> faults_of(1, 1000, 300.0)
    'terminate ps:1 at step 430; kill chief:0 at step 749'
  """
  chance = random.Random(seed)
  chosen, step = [], float(_FIRST_STEP)
  while True:
    step += per_fault * chance.uniform(0.5, 1.5)
    if step >= num_steps:
      return '; '.join(chosen)
    kind, _, amount = chance.choice(_KINDS).partition(' ')
    chosen.append(' '.join(filter(None, (
        kind, chance.choice(_TASKS), amount, f'at step {step:.0f}'))))


def run(num_steps: int, faults: str, directory: pathlib.Path) -> Soaked:
  """Trains, from where `directory` ended, and returns what came of it."""
  if directory.exists():
    told = _soaked(directory)
    if told.last_step >= num_steps - NUM_WORKERS:
      return told
    faults = '; '.join(
        fault for fault in faults.split('; ')
        if int(fault.rpartition(' ')[2]) > told.last_step)
  directory.mkdir(parents=True, exist_ok=True)
  options = launch_options.LaunchOptions(
      command=(sys.executable, str(play.PROGRAM), FORM, str(directory),
               str(num_steps), str(NUM_WORKERS), str(SAVE_STEPS),
               str(STEP_SECS)),
      logs_dir=str(directory / 'logs'), model_dir=str(directory / 'model'),
      workers=NUM_WORKERS - 1, ps=NUM_PS, restart='on_failure',
      max_restarts=10**6, spare=True, inject=faults, show=('chief',),
      grep='nothing of it')
  with play.environment(), resources.sampled(directory):
    launch_lib.launch(options, lambda line: None)
  return _soaked(directory)


def _soaked(directory: pathlib.Path) -> Soaked:
  play.check_batches(FORM, directory)
  # A parameter server makes none.
  steps = {task: made for task, made in play.steps_of(directory).items()
           if made}
  run_time = _run_time(note[0] for made in steps.values() for note in made)
  steps = {task: [(run_time(time), *rest) for time, *rest in made]
           for task, made in steps.items()}
  told = sorted((time, step) for of_task in steps.values()
                for time, _, step in of_task)
  # From when all train, as starting takes its time.
  begin, end = max(made[0][0] for made in steps.values()), told[-1][0]
  first = next(step for time, step in told if time >= begin)
  found = events.read_run(directory / 'model').events
  came = sorted(_came(event) for event in found if event.name == 'injecting')
  tasks = {}
  for event in sorted(found, key=lambda event: event.time):
    tasks.setdefault(event.pid, (event.task, event.time))
  return Soaked(end - begin, told[-1][1] - first,
                stretches_of(steps, [(run_time(time), *rest)
                                     for time, *rest in came], told, end),
                play.fall(steps['chief-0']),
                sum(made[-1][0] > end - 2.0 for made in steps.values()),
                told[-1][1], tasks,
                [at for at, task, kind in came
                 if task.startswith('ps') and kind != 'stop'],
                max(event.session for event in found) - 1,
                ', '.join(sorted({
                    event.details['versions']['tensorflow'] for event in found
                    if 'versions' in event.details})))


def _run_time(times: Iterable[float]) -> Callable[[float], float]:
  """Returns a clock that stands still between the parts of a run."""
  times = sorted(times)
  pauses = [(before, after) for before, after in zip(times, times[1:])
            if after - before > _BETWEEN_PARTS_SECS]
  return lambda time: time - sum(
      max(0.0, min(time, after) - before) for before, after in pauses)


def _came(event: events.Event) -> tuple[float, str, str]:
  """Returns the time, victim and kind of a fault."""
  fault, = language.parse(event.details['fault'])
  return event.time, fault.task, fault.kind


def stretches_of(steps: Mapping[str, Sequence], came: Sequence[tuple],
                 told: Sequence[tuple], end: float) -> list[Stretch]:
  """Returns what became of each fault: `came` has time, victim and kind."""
  untils = [*(time for time, *_ in came[1:]), end]
  backs = [_back(time, until, steps[_trains_for(task).replace(':', '-')])
           for (time, task, _), until in zip(came, untils)]
  away = [(time, end if back is None else back)
          for (time, task, _), back in zip(came, backs) if task in _TRAINS]
  times = [time for time, _ in told]
  stretches = []
  for (begin, task, kind), back, until in zip(came, backs, untils):
    first, last = (told[max(bisect.bisect_right(times, time) - 1, 0)][1]
                   for time in (begin, until))
    stretches.append(Stretch(
        task.partition(':')[0], kind, until - begin, last - first,
        sum(max(0.0, min(until, to) - max(begin, since))
            for since, to in away),
        None if back is None else back - begin))
  return stretches


def _trains_for(task: str) -> str:
  """The task whose steps tell that a victim is back."""
  return task if task in _TRAINS else 'chief:0'


def _back(fault: float, until: float, steps: Sequence) -> float | None:
  """When the longest pause between a fault and the next was over."""
  times = [fault, *(at for at, *_ in steps if at > fault)]
  pauses = [(min(after, until) - before, after)
            for before, after in zip(times, times[1:]) if before < until]
  return max(pauses)[1] if pauses else None


def _rows(stretches: Sequence[Stretch], clean: float) -> Iterator[str]:
  for name, is_in in _ROWS.items():
    of_row = [s for s in stretches if is_in(s)]
    backs = [s.back_secs for s in of_row if s.back_secs is not None]
    if backs:
      yield (f'| {name} | {len(of_row)} | {goodput(of_row, clean):.1%} | '
             f'{statistics.median(backs):.1f}, {max(backs):.1f} |')


def main(arguments: argparse.Namespace) -> int:
  """Soaks, and writes the page; returns the exit status."""
  with contextlib.ExitStack() as stack:
    root = pathlib.Path(arguments.directory or stack.enter_context(
        tempfile.TemporaryDirectory()))
    clean = run(arguments.clean_steps, '', root / 'clean')
    rate = clean.num_steps / clean.wall_secs
    num_steps = int(rate * 60 * arguments.minutes)
    faults = faults_of(arguments.seed, num_steps,
                       rate * 3600 / arguments.per_hour)
    sys.stdout.write(f'{rate:.1f} steps a second; now {num_steps} steps and '
                     f'{len(faults.split(";"))} faults\n')
    sys.stdout.flush()
    found = run(num_steps, faults, root / 'faults')
    is_long = found.wall_secs > _LONG_SECS
    held = is_long and resources.text(root / 'faults', found.tasks, found.lost)
  text = (_HOURS if is_long else _TEXT).format(
      num_workers=NUM_WORKERS - 1, num_ps=NUM_PS, form=FORM,
      step_ms=1000 * STEP_SECS, stop=STOP_SECS, num_tasks=len(_TASKS),
      rows='\n'.join(_rows(found.stretches, rate)), clean=rate,
      save=SAVE_STEPS, num_continued=found.num_continued,
      tensorflow=found.tensorflow, resources=held,
      arguments=f'--minutes={arguments.minutes:g} '
      f'--per_hour={arguments.per_hour:g} --seed={arguments.seed}',
      number=len(found.stretches), wall=found.wall_secs,
      rate=3600 * len(found.stretches) / found.wall_secs,
      part=found.num_training, num_trains=NUM_WORKERS, fall=found.fall,
      last_step=found.last_step)
  sys.stdout.write(text)
  if arguments.write:
    page.PATH.write_text(page.with_part(
        page.PATH.read_text(), page.HOURS if is_long else page.MINUTES, text))
  return 0


if __name__ == '__main__':
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--minutes', type=float, default=20.0)
  parser.add_argument('--per_hour', type=float, default=150.0)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--clean_steps', type=int, default=2_000)
  parser.add_argument('--directory', help='where the runs stay; one that is '
                      'in it continues, or is read if it has all its steps')
  parser.add_argument('--no_page', dest='write', action='store_false')
  sys.exit(main(parser.parse_args()))
