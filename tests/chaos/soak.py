# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets one run meet fault after fault, and adds docs/soak.md to the pages.

  python -m tests.chaos.soak [--minutes 30] [--per_hour 150] [--seed 1]

A chief and three workers train with two parameter servers, first for some
minutes without a fault, which tells how many steps they make in a second, and
then with faults that come by chance: each task, and each kind of end or stop,
is as likely as another. Processes begin as users' do, and nothing is touched by
hand.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence

from tests.chaos import play
from tfplugin import events
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.faults import language

PATH = pathlib.Path(__file__).parents[2] / 'docs' / 'soak.md'
FORM = 'elastic_average'
NUM_WORKERS, NUM_PS = 4, 2
STOP_SECS = 5.0
# Of all workers: some seconds.
SAVE_STEPS = 1000
# The first faults wait until everybody trains.
_FIRST_STEP = 200
_TRAINS = ('chief:0', *(f'worker:{i}' for i in range(NUM_WORKERS - 1)))
_TASKS = (*_TRAINS, *(f'ps:{i}' for i in range(NUM_PS)))
_KINDS = ('kill', 'terminate', f'stop for {STOP_SECS:g} s')

_TEXT = """\
# Half an hour of faults

Written by `make soak ARGS='{arguments}'`: a chief, {num_workers} workers and
{num_ps} parameter servers on one machine, `{form}`, {number} faults in
{wall:.0f} s. Each is SIGKILL, SIGTERM, or a stop of {stop:g} s, of any of the
{num_tasks} tasks, by chance.

| | |
| --- | --- |
| faults an hour | {rate:.0f} |
| steps a second without a fault, of all workers | {clean:.1f} |
| steps made and kept | {steps} |
| goodput | {goodput:.1%} |
| a victim trains again, s: median, longest | {median:.1f}, {longest:.1f} |
| workers that train at the end, of those that live | {part} of {num_trains} |
| largest fall of the global step | {fall} (a save comes every {save}) |

Goodput is the steps that were made and kept, of those that the same time
without a fault would have brought, less the time in which a worker was dead or
stopped itself.
"""


@dataclasses.dataclass(frozen=True)
class Soaked:
  """What a run with faults came to.

  Attributes:
    wall_secs: From the first step to the end.
    num_steps: Of the last checkpoint, less those before `wall_secs` began.
    away_secs: How long each worker was dead or stopped, added up.
    back_secs: How long each victim took until it trained again.
    fall: How far the global step fell at most.
    num_training: How many workers made a step in the last seconds.
    num_faults: How many came.
  """

  wall_secs: float
  num_steps: int
  away_secs: float
  back_secs: Sequence[float]
  fall: int
  num_training: int
  num_faults: int

  def goodput(self, clean: float) -> float:
    """Returns the part of the steps that could be made.

    Args:
      clean: Steps a second of all workers without a fault.
    """
    alive = self.wall_secs - self.away_secs / NUM_WORKERS
    return self.num_steps / (clean * alive)


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
  """Trains, and returns what came of it.

  Args:
    num_steps: The steps of all workers.
    faults: See `faults_of`; empty: none.
    directory: An empty directory.
  """
  options = launch_options.LaunchOptions(
      command=(sys.executable, str(play.PROGRAM), FORM, str(directory),
               str(num_steps), str(NUM_WORKERS), str(SAVE_STEPS)),
      logs_dir=str(directory / 'logs'), model_dir=str(directory / 'model'),
      workers=NUM_WORKERS - 1, ps=NUM_PS, restart='always', max_restarts=10**6,
      inject=faults, show=('chief',), grep='nothing of it')
  with play.environment():
    launch_lib.launch(options, lambda line: None)
  return _soaked(directory)


def _soaked(directory: pathlib.Path) -> Soaked:
  steps = play.steps_of(directory)
  told = events.read_run(directory / 'model').events
  came = [e for e in told if e.name == 'injecting']
  begin = min(made[0][0] for made in steps.values())
  end = max(made[-1][0] for made in steps.values())
  backs, away = [], 0.0
  for event in came:
    fault, = language.parse(event.details['fault'])
    trains = fault.task in _TRAINS
    task = fault.task if trains else 'chief:0'
    next_ = min((at for at, *_ in steps[task.replace(':', '-')]
                 if at > event.time), default=None)
    if next_ is not None:
      backs.append(next_ - event.time)
    if trains:
      away += (end if next_ is None else next_) - event.time
  chief = steps['chief-0']
  return Soaked(
      end - begin, play.last_step(directory) - chief[0][2], away, backs,
      play.fall(chief), sum(made[-1][0] > end - 2.0 for made in steps.values()),
      len(came))


def main(arguments: argparse.Namespace) -> int:
  """Soaks, and writes the page; returns the exit status."""
  with tempfile.TemporaryDirectory() as directory:
    clean = run(arguments.clean_steps, '', pathlib.Path(directory))
  rate = clean.num_steps / clean.wall_secs
  num_steps = int(rate * 60 * arguments.minutes)
  faults = faults_of(arguments.seed, num_steps,
                     rate * 3600 / arguments.per_hour)
  sys.stdout.write(f'{rate:.1f} steps a second; now {num_steps} steps and '
                   f'{len(faults.split(";"))} faults\n')
  sys.stdout.flush()
  with tempfile.TemporaryDirectory() as directory:
    found = run(num_steps, faults, pathlib.Path(directory))
  text = _TEXT.format(
      arguments=f'--minutes={arguments.minutes:g} '
      f'--per_hour={arguments.per_hour:g} --seed={arguments.seed}',
      num_workers=NUM_WORKERS - 1, num_ps=NUM_PS,
      form=FORM, number=found.num_faults, wall=found.wall_secs, stop=STOP_SECS,
      num_tasks=len(_TASKS), rate=3600 * found.num_faults / found.wall_secs,
      clean=rate, steps=found.num_steps, goodput=found.goodput(rate),
      median=statistics.median(found.back_secs),
      longest=max(found.back_secs), part=found.num_training,
      num_trains=NUM_WORKERS, fall=found.fall, save=SAVE_STEPS)
  sys.stdout.write(text)
  if arguments.write:
    PATH.write_text(text)
  return 0


if __name__ == '__main__':
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--minutes', type=float, default=30.0)
  parser.add_argument('--per_hour', type=float, default=150.0)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--clean_steps', type=int, default=10_000)
  parser.add_argument('--no_page', dest='write', action='store_false')
  sys.exit(main(parser.parse_args()))
