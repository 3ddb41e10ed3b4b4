# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets workers join and leave one run at random, and checks what it computed.

  python -m tests.chaos.joins [--number 30] [--minutes 10] [--seed 1]

A chief trains with two parameter servers. `number` workers join at random
times; each stays for a random time, and then leaves by SIGTERM or is killed.
Every step adds 1 to the variables, so their values say how many steps reached
them. The same seed plans the same joins and leaves.
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
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfplugin import events
from tfplugin.bin.launches import joins
from tfplugin.distribute import cluster_config

_ROOT = pathlib.Path(__file__).parents[2]
_PROGRAM = _ROOT / 'tests/distributed/joins/joins_program.py'
_STEP_SECS = 0.1
_MAX_WORKERS = 6
_LIMIT_SECS = 180.0
# Of a task's median step: a longer one counts as lost beyond it.
_LONG = 2.0


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
    self._command = [sys.executable, str(_PROGRAM), form, str(directory),
                     str(_STEP_SECS)]
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
    self._workers[number] = self._start(self._command, {
        'TF_CONFIG': cluster_config.encode(layout.cluster, layout.own[0],
                                           layout.tf_config)})
    return True

  def leave(self, number: int, is_killed: bool) -> None:
    """Ends a worker."""
    self._workers[number].send_signal(
        signal.SIGKILL if is_killed else signal.SIGTERM)

  def end(self) -> None:
    """Ends the run in order; raises if a task that should not have failed."""
    (self.directory / 'end').touch()
    status = self._main.wait(_LIMIT_SECS)
    if status:
      raise RuntimeError(f'The run ended with {status}: {self._shown()}')

  def close(self) -> None:
    """Leaves no process behind."""
    for process in (*self._workers.values(), self._main):
      if process.poll() is None:
        process.terminate()
    for process in (*self._workers.values(), self._main):
      process.wait(60)
    self._out.close()

  def records(self) -> list[Mapping]:
    """Returns what the processes of the program have written."""
    return [json.loads(path.read_text())
            for path in sorted(self.directory.glob('*.json'))]

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


def check(run: Run, killed: int) -> Mapping[str, float]:
  """Raises AssertionError for wrong values; returns the figures."""
  checkpoint = tf.train.load_checkpoint(str(run.directory / 'model'))
  step = int(checkpoint.get_tensor('global_step'))
  values = checkpoint.get_tensor('w')
  records = run.records()
  noted = sum(record['steps'] for record in records)
  # A killed worker may have made one step that it did not note.
  if not (values == step).all() or not 0 <= step - noted <= killed:
    raise AssertionError(f'w={values}, global_step={step}, noted={noted}, '
                         f'{killed} killed')
  late = [record['first_step'] - record['created'] for record in records
          if record['first_step'] and record['task'] != 'chief-0']
  seen = [event.name for event in events.read_run(
      str(run.directory / 'model')).events if event.name in ('joined', 'left')]
  return {'steps': step, 'not noted': step - noted,
          'trained': len(late),
          'first push, s: median': statistics.median(late),
          'first push, s: longest': max(late), 'joined': seen.count('joined'),
          'left': seen.count('left'),
          'goodput': goodput([record['times'] for record in records])}


def main(arguments: argparse.Namespace) -> int:
  """Plays, checks and shows; returns the exit status."""
  total_secs = arguments.minutes * 60
  stays = plan(arguments.number, total_secs, arguments.seed)
  with tempfile.TemporaryDirectory() as directory:
    run = Run(pathlib.Path(directory), arguments.form)
    try:
      while not run.records():
        time.sleep(0.1)
      num_joined = play(run, stays, total_secs)
      run.end()
    finally:
      run.close()
    figures = check(run, sum(stay.is_killed for stay in stays))
  _say(f'seed {arguments.seed}, {arguments.minutes:g} min: {num_joined} of '
       f'{arguments.number} joined, load {os.getloadavg()[0]:.1f}')
  for name, value in figures.items():
    _say(f'  {name}: {value:.4g}')
  return 0


def _say(line: str) -> None:
  print(line, flush=True)  # noqa: T201 (a program)


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('--number', type=int, default=30)
  parser.add_argument('--minutes', type=float, default=10.0)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--form', default='plain')
  sys.exit(main(parser.parse_args()))
