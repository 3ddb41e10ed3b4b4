# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The processes on the hosts, those that stay and those that come and go."""

from __future__ import annotations

import contextlib
import itertools
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from benchmarks import contrib_reference
from benchmarks import machine
from benchmarks import roles
from benchmarks.network import cells
from benchmarks.network import hosts
from benchmarks.network import page

MODEL = {'model_bytes': cells.MODEL_BYTES, 'largest_part': cells.LARGEST_PART,
         'num_worker': cells.NUM_WORKER}
_START_SECS = 900.0
# Beyond a slot: two whole periods of the slowest cell, and a quiet link.
_SLOT_LIMIT_SECS = 120.0
_NOTICE_SECS = 0.2
# Of local steps before and after a cell: the machine's speed at that time.
_BESIDE_SECS = 1.0
_PROGRAM_PORT = 2300
# Rounds with those that come and go: a start takes as long as ten slots.
_VISITS = 2


class Testbed:
  """Hosts, and what measures on them."""

  def __init__(self, made: hosts.Hosts, log: pathlib.Path,
               contrib: str | None = None, horovod: str | None = None,
               num_worker: int = cells.NUM_WORKER):
    """Says where all is run.

    Args:
      made: The hosts.
      log: Where what the processes say goes.
      contrib: A Python with the originals, or None.
      horovod: A Python with Horovod, or None.
      num_worker: The first hosts have a worker each, the others a server.
    """
    self._made, self._log, self._horovod = made, log, horovod
    self._workers = range(num_worker)
    self._servers = range(num_worker, len(made.addresses))
    self._model = {**MODEL, 'num_worker': num_worker,
                   'num_ps': len(self._servers)}
    self._programs = {cells.CONTRIB: contrib,
                      cells.AS_CONTRIB: sys.executable} if contrib else {}
    self._before = None  # What `_measure` returned last.

  def measure(self, links: tuple[cells.Link, ...],
              is_quick: bool) -> dict[str, Any]:
    """Returns the cells' figures by link and name.

    Args:
      links: The links, from the fastest to the slowest.
      is_quick: Whether it is the quick selection.
    """
    results = {}
    for link in links:
      results[link.name] = {}
      self._measure_link(link, results, list(_slots(
          link, cells.selected(link, cells.STAYING_CELLS, is_quick), _VISITS)))
    return results

  def add(self, results: dict[str, Any], names: Collection[str]) -> None:
    """Adds rounds of cells where they have been measured.

    One that has not been is measured on the links of the others.

    Args:
      results: What `measure` returned.
      names: Those of the cells.
    """
    new = set(names).difference(*results.values())
    for link in cells.LINKS:
      known = new.union(results.get(link.name, ())).intersection(names)
      self._measure_link(link, results, list(_slots(link, [
          cell for cell in cells.STAYING_CELLS
          if cell.name in known]) if known > new else []))

  def _measure_link(self, link, results, slots):
    while slots:
      slots = self._measure_slots(link, slots, results)

  def _measure_slots(self, link, slots, results):
    """Measures, with processes of their own, and returns what is left."""
    # First of all: on a link that gets slower gRPC sends by turns what it sends
    # one after the other on one that has always been so.
    self._made.shape(link.mbit)
    self._before = None
    with self._running({
        **{('ps', task): host for task, host in enumerate(self._servers)},
        **{(kind, task): task for kind in ('worker', *cells.RINGS)
           for task in self._workers}}, sys.executable, {
            cells.LOCAL, *(cells.ALONE_STEPS.get(cell.name, cell).name
                           for _, cell in slots if cell)}) as every:
      print(f'{link.name}: all are ready', flush=True)
      for index, (part, cell) in enumerate(slots):
        try:
          if cell is None:
            self._before = None
            self._measure_visitors(link, results[link.name])
          else:
            self._measure_stayer(link, cell, part, every, results)
        except (RuntimeError, TimeoutError) as e:
          # TensorFlow draws the ids of a session's steps anew for each, of 32
          # bits: a server that remembers 100,000 of them takes one of 43,000
          # steps for another one sent twice, and refuses it.
          if not index:
            raise
          print(f'{link.name}: all begin anew: {e}', flush=True)
          return slots[index:]
    return []

  def _measure_stayer(self, link, cell, part, every, results):
    # Of one alone. Where the other is in its period when a worker begins
    # decides whether they meet on the link, again and again.
    secs = page.foreseen_secs(
        {'links': results, **self._model}, link, cell, num_worker=1) or 0.0
    kind = cell.name if cell in cells.RING_CELLS else 'worker'
    is_alone = cell.name in cells.ALONE_STEPS
    beside = [every['worker', task] for task in self._workers
              if is_alone or cell.exchange]
    workers = self._workers[:1] if is_alone else self._workers
    apart = 0.0
    if cell.exchange and link.apart_secs:
      # Workers of elastic averaging end up apart, wherever they began, and what
      # a long training does is asked for.
      apart, part = min(link.apart_secs, cells.COME_APART * secs), 0.5
    self._before = _measure(
        link, cell, [every[kind, task] for task in workers], secs, secs * part,
        apart, results[link.name],
        [every['ps', task] for task in range(len(self._servers))], beside,
        self._before)

  def _measure_visitors(self, link, found):
    for cell in cells.HOROVOD_CELLS if self._horovod else ():
      with self._running({(cell.name, task): task for task in self._workers},
                         self._horovod, [cell.name]) as pair:
        _measure(link, cell, list(pair.values()), 0.0, 0.0, 0.0, found)
    for (whose, python), period in itertools.product(
        self._programs.items(), cells.PROGRAM_PERIODS):
      self._run_program(link, cells.program_cell(whose, period), python, period,
                        found)

  @contextlib.contextmanager
  def _running(self, kinds: Mapping[tuple[str, int], int], python: str,
               names: Collection[str],
               ) -> Iterator[dict[tuple[str, int], roles.Role]]:
    """Runs roles while a `with` lasts; they are ready.

    Args:
      kinds: The host of each role, by its kind and task.
      python: That runs them.
      names: Of the cells that are built.
    """
    with roles.running([self._made.command(host, [
        python, '-W', 'ignore', '-m', 'benchmarks.network.role', kind,
        str(task), json.dumps(self._cluster()), json.dumps(sorted(names))])
                        for (kind, task), host in kinds.items()],
                       machine.ROOT, self._log) as processes:
      every = {key: roles.Role(process, f'{key[0]}:{key[1]}')
               for key, process in zip(kinds, processes)}
      for role in every.values():
        role.answer(_START_SECS)
      yield every

  def _cluster(self):
    return {job: [self._made.addresses[host] for host in on] for job, on in (
        ('ps', self._servers), ('worker', self._workers))}

  def _run_program(self, link, name, python, period, found):
    """Adds what the program says that both packages run."""
    on = (*self._servers, *self._workers)
    places = [f'{self._made.addresses[host]}:{_PROGRAM_PORT}' for host in on]
    with roles.running([
        self._made.command(host, contrib_reference.role_command(
            python, role, 'elastic', period, places))
        for role, host in enumerate(on)],
                       machine.ROOT, self._log) as processes:
      workers = [roles.Role(process, name) for process in processes[1:]]
      _add(link, name, [worker.answer(_SLOT_LIMIT_SECS) for worker in workers],
           None, found)


def _slots(link, selected, visits=0):
  """Cells, and the part of a period after which the second of two begins.

  No cell: those that come and go. How workers that push gradients meet differs
  so much that in each round two parts of a period are tried.
  """
  for turn in range(link.rounds):
    for cell in selected:
      times = 2 if cell.name in cells.ON_SERVER else 1
      for index in range(times):
        yield (turn + (index + 0.5) / times) / link.rounds, cell
    if turn < visits:
      yield 0.0, None


def _measure(link, cell, pair, between, later, apart, found, server=(),
             beside=(), local=None):
  """Adds a round of workers that have come `apart`.

  The speed of a machine changes from second to second, so that next to a round
  of which processors are the limit there are local steps.

  Args:
    link: The link.
    cell: The cell.
    pair: The workers' roles.
    between: Seconds from a communication to the next, of one worker alone.
    later: How long after the first one of two the other one begins; of more,
      the later ones as much later.
    apart: Seconds beyond `between` of steps that do not count.
    found: The figures of the link.
    server: The role of the parameter server.
    beside: The roles that make local steps before and after.
    local: What this returned of the cell before, if that is this moment.

  Returns:
    The rates of local steps after the round; None: not measured.
  """
  if beside:
    local = local or _local_rates(beside)
  begin = time.time() + _NOTICE_SECS
  on = (pair, server)
  before = _processors_secs(*on)
  for index, role in enumerate(pair):
    wait = later * index * 2 / len(pair)
    role.ask(cell.name, begin + wait,
             (between + apart - wait, link.slot_secs, between),
             link.sync_steps if cell in cells.SYNC_CELLS else 0)
  rates, moved, steps = zip(*(
      role.answer(apart + link.slot_secs + _SLOT_LIMIT_SECS) for role in pair))
  taken = [now - secs for now, secs in zip(_processors_secs(*on), before)]
  after = _local_rates(beside) if beside else None
  _add(link, cell.name, rates, None if None in moved else [
      sum(way) / len(moved) for way in zip(*moved)], found,
       [1e3 * secs / sum(steps) for secs in taken],
       after and [statistics.harmonic_mean(each)
                  for each in zip(local, after)])
  return after


def _local_rates(pair):
  begin = time.time() + _NOTICE_SECS
  for role in pair:
    role.ask(cells.LOCAL, begin, (0.0, _BESIDE_SECS, 0.0), 0)
  return [role.answer(_BESIDE_SECS + _SLOT_LIMIT_SECS)[0] for role in pair]


def _processors_secs(*on):
  """Seconds of each of the groups of roles, and of these the kernel's."""
  every = [[role.processors_secs() for role in group] for group in on]
  return [*(sum(total for total, _ in group) for group in every),
          sum(kernel for group in every for _, kernel in group)]


def _add(link, name, rates, moved, found, processors_ms=None, beside=None):
  figures = found.setdefault(name, {
      'steps_per_sec': [], 'bytes': [], 'processors_ms': [],
      'local_steps_per_sec': []})
  figures['steps_per_sec'].append(list(rates))
  figures['bytes'].append(moved)
  figures['processors_ms'].append(processors_ms)
  figures['local_steps_per_sec'].append(beside)
  print(f'{link.name}, round {len(figures["bytes"])}: {name}: '
        f'{sum(rates) / len(rates):.4g} steps/s per worker', flush=True)
