# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets workers join and leave one run at random, and checks what it computed.

  python -m tests.chaos.joins [--number 30] [--minutes 10] [--seed 1] [--write]

For plain asynchronous training, and for elastic averaging: a chief trains with
two parameter servers. `number` workers join at random times; each stays for a
random time, and then leaves by SIGTERM or is killed. Every step adds 1. Plain
variables count the steps of all; `elastic_replay` explains those of elastic
averaging. The same seed plans the same joins and leaves. `--write` tells of it
in docs/chaos.md.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tests.chaos import elastic_replay
from tests.chaos import page
from tests.distributed.joins import joins_program
from tfplugin import events
from tfplugin.bin.launches import joins
from tfplugin.distribute import cluster_config

_ROOT = pathlib.Path(__file__).parents[2]
FORMS = ('plain', 'elastic')
_STEP_SECS = 0.1
_MAX_WORKERS = 6
_LIMIT_SECS = 180.0
_NOTED = 'noted.json'
# Of a task's median step: a longer one counts as lost beyond it.
_LONG = 2.0


_TEXT = """\
Written by `python -m tests.chaos.joins {arguments}
--write`: a chief and two parameter servers on one machine, steps of
{step:.0f} ms. In {minutes:g} minutes {number} workers are started at random, at
most {most} at a time: a further one is refused. Each leaves after a random
time, by SIGTERM or SIGKILL, or stays.

| form | joined | left | killed | steps | goodput | first push, s |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

Joined: workers that the run had a place for. Left: how many of them left
before the end, by either signal. Killed: by SIGKILL. Steps: of the chief and
all workers. First push: from the start of the process, median and
longest.

Goodput is the share of the time in which tasks trained at their own pace. A
task's pace is its median step. If a step takes more than twice as long, the
time beyond that is lost.

Values equal a replay in numpy. Each step of plain training is in the variable
once. Each exchange of elastic averaging follows from the ones before, with the
rate for the workers present. No task failed, or restarted, or lost its session.

The machine has {cpus} CPUs. Its load average was {load:.1f} at the end.
"""
_ROW = ('| `{form}` | {joined} | {left} | {killed} | {num_steps} | '
        '{goodput:.2%} | {median_secs:.1f}, {longest_secs:.1f} |')


class Figures(NamedTuple):
  """The figures of a run."""

  num_steps: int
  trained: int
  killed: int
  joined: int
  left: int
  goodput: float
  median_secs: float
  longest_secs: float
  load: float


class Stay(NamedTuple):
  """One worker: when it joins, how long it stays, in seconds, and its end."""

  start: float
  secs: float
  is_killed: bool


def plan(number: int, total_secs: float, seed: int) -> list[Stay]:
  """Returns the stays of `number` workers, the first one first."""
  rng = random.Random(seed)
  longest = total_secs * _MAX_WORKERS / max(number, 1) / 2
  return sorted(
      Stay(rng.uniform(0, total_secs * 0.85), rng.uniform(longest / 4, longest),
           rng.random() < 0.5) for _ in range(number))


def goodput(times: Sequence[Sequence[float]]) -> float:
  """Returns the share of the time in which tasks stepped at their own pace.

  `times` has the times of the steps of each task, from its first step on. Of a
  step, more than twice the task's median is lost.

  Example:
    >>> goodput([[0.0, 1.0, 2.0, 6.0, 7.0]])  # of 7 s, 2 are lost
    0.7142857142857143
  """
  useful = whole = 0.0
  for one in times:
    gaps = np.diff(one)
    if gaps.size:
      useful += np.minimum(gaps, _LONG * statistics.median(gaps)).sum()
      whole += gaps.sum()
  return float(useful / whole)


class Run:
  """The processes of the run."""

  def __init__(self, directory: pathlib.Path, form: str):
    self.directory = directory
    self.killed_at: dict[str, float] = {}
    self._tasks: dict[int, str] = {}
    self._command = [sys.executable, joins_program.__file__, form,
                     str(directory), str(_STEP_SECS)]
    self._out = (directory / 'out').open('w', encoding='utf-8')
    self._main = self._start(
        [sys.executable, '-m', 'tfplugin.bin.launch',
         f'--workers=0:{_MAX_WORKERS}', '--ps=2',
         f'--logs_dir={directory}/logs', '--', *self._command], {})
    self._workers: dict[int, subprocess.Popen] = {}
    deadline = time.monotonic() + _LIMIT_SECS
    while not (found := re.search(r'--join=(\S+)', self._shown())):
      if time.monotonic() > deadline:
        raise TimeoutError(self._shown())
      time.sleep(0.1)
    self._address = found[1]

  def join(self, number: int) -> bool:
    """Starts a worker; returns whether the run had a place for it."""
    try:
      layout = joins.layout(self._address)
    except RuntimeError as error:
      _say(f'worker {number}: {error}')
      return False
    self._tasks[number] = layout.own[0].name.replace(':', '-')
    self._workers[number] = self._start(self._command, {
        'TF_CONFIG': cluster_config.encode(layout.cluster, layout.own[0],
                                           layout.tf_config)})
    return True

  def leave(self, number: int, is_killed: bool) -> None:
    """Ends a worker."""
    self._workers[number].send_signal(
        signal.SIGKILL if is_killed else signal.SIGTERM)
    if is_killed:
      self.killed_at[self._tasks[number]] = time.time()

  def end(self) -> None:
    """Ends the run in order; raises if a task that should not have failed."""
    (self.directory / 'end').touch()
    status = self._main.wait(_LIMIT_SECS)
    if status:
      raise RuntimeError(f'The run ended with {status}: {self._shown()}')

  def close(self) -> None:
    """Leaves no process behind, and notes what `figures` needs."""
    for process in (*self._workers.values(), self._main):
      if process.poll() is None:
        process.terminate()
    for process in (*self._workers.values(), self._main):
      process.wait(60)
    self._out.close()
    (self.directory / _NOTED).write_text(json.dumps(
        {'killed_at': self.killed_at, 'load': os.getloadavg()[2]}))

  def _start(self, command, variables):
    return subprocess.Popen(
        command, stdout=self._out, stderr=subprocess.STDOUT,
        env={**os.environ, 'PYTHONPATH': str(_ROOT), **variables})

  def _shown(self) -> str:
    return (self.directory / 'out').read_text()


def play(run: Run, stays: Sequence[Stay], total_secs: float) -> int:
  """Plays the stays; returns how many workers joined."""
  acts = sorted([(stay.start, number, True) for number, stay in
                 enumerate(stays)] +
                [(stay.start + stay.secs, number, False)
                 for number, stay in enumerate(stays)])
  begun, here = time.monotonic(), set()
  for at, number, is_join in acts:
    if at > total_secs:
      continue  # It stays to the end.
    time.sleep(max(0.0, begun + at - time.monotonic()))
    if is_join and run.join(number):
      here.add(number)
    elif not is_join and number in here:
      run.leave(number, stays[number].is_killed)
  return len(here)


def figures(directory: pathlib.Path, form: str) -> Figures:
  """Returns the figures of a run; raises AssertionError for wrong values."""
  noted = json.loads((directory / _NOTED).read_text())
  records = joins_program.read_records(directory)
  told = events.read_run(str(directory / 'model')).events
  failed = [event for event in told if event.name in ('dying', 'coming_back')]
  if failed:
    raise AssertionError(f'Nobody must fail or restart. Received: {failed}')
  told = [event for event in told if event.name in ('joined', 'left')]
  values = tf.train.load_checkpoint(str(directory / 'model'))
  num_steps = sum(len(record['steps']) for record in records)
  if form == 'elastic':
    for value in values.get_tensor('w'):
      elastic_replay.replay(records, joins_program.PERIOD, noted['killed_at'],
                            counts_of(told), value)
  else:
    step, w = (values.get_tensor(name) for name in ('global_step', 'w'))
    # A killed worker may have made one step that it did not note.
    if not (w == step).all() or not (
        0 <= step - num_steps <= len(noted['killed_at'])):
      raise AssertionError(f'w={w}, global_step={step}, noted={num_steps}, '
                           f'{len(noted["killed_at"])} killed')
  late = [record['steps'][0][1] - record['created'] for record in records
          if record['task'] != 'chief-0']
  names = [event.name for event in told]
  return Figures(
      num_steps, len(late), len(noted['killed_at']), names.count('joined'),
      names.count('left'),
      goodput([[end for _, end, _ in record['steps']] for record in records]),
      statistics.median(late), max(late), noted['load'])


def counts_of(told: Sequence[events.Event]) -> list[elastic_replay.Count]:
  """Returns how many workers the chief counted, from when on."""
  counts = [elastic_replay.Count(0.0, 1)]
  for event in told:
    counts.append(elastic_replay.Count(
        event.time, counts[-1].workers + (1 if event.name == 'joined' else -1)))
  return counts


def run_form(directory: pathlib.Path, form: str, stays: Sequence[Stay],
             total_secs: float) -> None:
  """Plays the stays in a run of `form`."""
  directory.mkdir(parents=True)
  run = Run(directory, form)
  try:
    while not joins_program.read_records(directory):
      time.sleep(0.1)
    play(run, stays, total_secs)
    run.end()
  finally:
    run.close()


def main(arguments: argparse.Namespace) -> int:
  """Plays, checks and shows; returns the exit status."""
  total_secs = arguments.minutes * 60
  stays = plan(arguments.number, total_secs, arguments.seed)
  found = {}
  with tempfile.TemporaryDirectory() as temporary:
    root = pathlib.Path(arguments.directory or temporary)
    for form in arguments.forms:
      if not (root / form).exists():
        run_form(root / form, form, stays, total_secs)
      found[form] = figures(root / form, form)
      _say(f'{form}: {found[form]}')
  text = _TEXT.format(
      arguments=f'--number={arguments.number} --minutes={arguments.minutes:g} '
      f'--seed={arguments.seed}', number=arguments.number,
      minutes=arguments.minutes, most=_MAX_WORKERS, step=1000 * _STEP_SECS,
      rows='\n'.join(_ROW.format(form=form, **each._asdict())
                     for form, each in found.items()),
      load=max(each.load for each in found.values()), cpus=os.cpu_count())
  _say(text)
  if arguments.write:
    page.PATH.write_text(page.with_part(
        page.PATH.read_text(), page.JOINS, text))
  return 0


def _say(line: str) -> None:
  print(line, flush=True)  # noqa: T201 (a program)


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('--number', type=int, default=30)
  parser.add_argument('--minutes', type=float, default=10.0)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--forms', nargs='*', default=FORMS)
  parser.add_argument('--directory', help='where runs stay; those in it are '
                      'read and not played again')
  parser.add_argument('--write', action='store_true')
  sys.exit(main(parser.parse_args()))
