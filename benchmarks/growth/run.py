# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures how cost grows with each size: `make bench-growth`.

usage: python -m benchmarks.growth.run [--try] [PART...]

Steps per second against workers and parameter servers; the time of a step
against parameters, and rows of a table; the time to build against variables;
operations against towers; memory of a worker and the time to its first step
against parameters. At each size the curves take turns, round by round, in
processes of their own; each part begins no further round when its time is up.

Takes 15 to 20 minutes, and up to 12 GB of memory; sizes that need more than is
free are left out, which the page says. Writes benchmarks/results/growth.json,
docs/pictures/growth_*.png and a part of docs/speed.md. --try takes the two
least sizes once, in a minute or two, prints the part and writes nothing: does
everything work here? With names of parts it measures those, and writes nothing.
"""

from __future__ import annotations

import collections
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import machine
from benchmarks import page_part
from benchmarks import roles
from benchmarks.growth import cells
from benchmarks.growth import page
from benchmarks.growth import pictures
from tfplugin.bin.processes import ports

_LIMIT_SECS = 300.0
_LEAST_ROUNDS = 2
_SLOT_SECS = 1.5
# What ten processes of TensorFlow take.
_CLUSTER_BYTES = 7e9
_NOT_RUN = ('GPUs, several machines, and shards in several processes',)

Figures = dict[str, dict[str, list[float]]]


class Measured:
  """What has been measured, and what could not be.

  Attributes:
    parts: Figures by part, curve and size, one of each round.
    not_run: What was left out, and why.
    has_failed: Whether something that should have run has not.
  """

  def __init__(self):
    self.parts = collections.defaultdict(
        lambda: collections.defaultdict(
            lambda: collections.defaultdict(list)))
    self.not_run = list(_NOT_RUN)
    self.has_failed = False

  def add(self, part: str, curve: str, size: int, figure: float) -> None:
    """Adds the figure of a round."""
    self.parts[part][curve][str(size)].append(figure)
    print(f'{part}, {size}: {curve}: {figure:.4g}', flush=True)

  @contextlib.contextmanager
  def of(self, what: str, needed_bytes: float):
    """Goes on after what fails, or would take more memory than there is.

    Args:
      what: What is measured inside.
      needed_bytes: The memory that it takes.

    Yields:
      Whether there is so much.
    """
    free = machine.free_bytes()
    if free < needed_bytes:
      self.not_run.append(
          f'{what}: {free / cells.GB:.1f} GB of memory were free, and '
          f'{needed_bytes / cells.GB:.1f} are needed')
    try:
      yield free >= needed_bytes
    except (OSError, RuntimeError, ValueError) as error:
      self.has_failed = True
      self.not_run.append(f'{what}: {str(error).rstrip(".")}')
      print(f'{what}: {error}', file=sys.stderr, flush=True)


def _commands(*arguments: Sequence[Any]) -> list[list[str]]:
  return [[sys.executable, '-W', 'ignore', '-m', 'benchmarks.growth.role',
           *map(str, each)] for each in arguments]


class _Clock:
  """Says whether another round of a part may begin."""

  def __init__(self, part):
    self._part, self._begin = part, time.monotonic()

  def rounds(self, index):
    """Yields the rounds of the size at `index`, whose share is in turn."""
    part = self._part
    share = part.limit_secs * (index + 1) / len(part.sizes)
    for turn in range(part.rounds):
      if turn < _LEAST_ROUNDS or time.monotonic() - self._begin < share:
        yield turn


def measure_sizes(part: cells.Part, measured: Measured) -> None:
  """Measures a part whose sizes are each a process.

  Args:
    part: The part.
    measured: Gets the figures.
  """
  clock = _Clock(part)
  for index, size in enumerate(part.sizes):
    with measured.of(f'{part.name}, {size}',
                     part.bytes_of_size * size) as can_run:
      if not can_run:
        continue
      with roles.running(_commands(('size', part.name, size)),
                         machine.ROOT) as [process]:
        role = roles.Role(process, f'{part.name}, {size}')
        role.answer(_LIMIT_SECS)
        for _ in clock.rounds(index):
          for curve in part.curves_at(size):
            role.ask(curve.name)
            measured.add(part.name, curve.name, size,
                         role.answer(_LIMIT_SECS))


def measure_workers(parts: Sequence[cells.Part], measured: Measured) -> None:
  """Measures steps per second, all in one cluster.

  Args:
    parts: One for each number of servers.
    measured: Gets the figures.
  """
  largest = max(part.sizes[-1] for part in parts)
  with measured.of('workers', _CLUSTER_BYTES) as can_run:
    if not can_run:
      return
    servers, workers = _addresses(len(parts)), _addresses(largest)
    every = [*(('ps', task, servers, workers) for task in range(len(parts))),
             *(('worker', task, servers, workers) for task in range(largest))]
    with roles.running(_commands(*every), machine.ROOT) as processes:
      found = [roles.Role(process, f'{kind}:{task}')
               for process, (kind, task, *_) in zip(processes, every)]
      for role, (kind, task, *_) in zip(found, every):
        role.answer(_LIMIT_SECS)
        print(f'{kind}:{task} is ready', flush=True)
      for count, part in enumerate(parts, 1):
        _slots(part, count, found[len(parts):], measured)


def _slots(part, servers, workers, measured):
  clock = _Clock(part)
  for index, size in enumerate(part.sizes):
    for _ in clock.rounds(index):
      for curve in part.curves_at(size):
        begin = time.time() + 0.2
        for worker in workers[:size]:
          worker.ask(curve.name, servers, begin, _SLOT_SECS)
        measured.add(part.name, curve.name, size, sum(
            worker.answer(_LIMIT_SECS) for worker in workers[:size]))


def _addresses(count):
  return ','.join(f'127.0.0.1:{port}' for port in ports.pick_free(count))


def measure_starts(part: cells.Part, measured: Measured) -> None:
  """Measures memory and the first step, a cluster for each figure.

  Args:
    part: The one of memory; the first step's are the same.
    measured: Gets the figures of both.
  """
  clock = _Clock(part)
  for index, size in enumerate(part.sizes):
    with measured.of(f'{part.name}, {size}',
                     part.bytes_of_size * size) as can_run:
      for _ in clock.rounds(index) if can_run else ():
        for curve in part.curves_at(size):
          for name, figure in _start(curve.name, size).items():
            measured.add(name, curve.name, size, figure)


def _start(curve, size):
  servers, workers = _addresses(1), _addresses(1)
  with roles.running(_commands(('ps', 0, servers, workers)),
                     machine.ROOT) as [server]:
    roles.Role(server, 'ps:0').answer(_LIMIT_SECS)
    with roles.running(_commands(('start', 0, servers, workers, curve, size,
                                  time.time())), machine.ROOT) as [process]:
      return roles.Role(process, f'{curve}, {size}').answer(_LIMIT_SECS)


def measure(parts: Sequence[cells.Part]) -> Measured:
  """Measures parts.

  Args:
    parts: Of `cells`.
  """
  measured = Measured()
  workers = [part for part in parts if part.name.startswith('workers')]
  for part in parts:
    if part.name in ('parameters', 'rows', 'variables', 'towers'):
      measure_sizes(part, measured)
    elif part.name == cells.MEMORY:
      measure_starts(part, measured)
  if workers:
    measure_workers(workers, measured)
  return measured


def main(argv: list[str]) -> int:
  """Measures; returns the exit status."""
  is_try, names = '--try' in argv, [name for name in argv if name != '--try']
  parts = cells.TRY if is_try else cells.PARTS
  known = [part.name for part in parts]
  if not set(names) <= set(known):
    print(f'{__doc__}\nThe parts: {", ".join(known)}.', file=sys.stderr)
    return 2
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  about, begin = machine.about(), time.monotonic()
  measured = measure([part for part in parts if not names or part.name in names
                      or part.name == cells.MEMORY
                      and cells.FIRST_STEP in names])
  results = {'about': about, 'seed': 0, 'secs': time.monotonic() - begin,
             'parts': measured.parts, 'not_run': measured.not_run}
  if is_try or names:
    print(page.PART.section(results))
  else:
    pictures.write(results)
    page.write(results)
    print(f'Wrote {page.PART.results}, pictures and a part of '
          f'{page_part.PAGE}, and of the pages of the wrappers.')
  return int(measured.has_failed)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
