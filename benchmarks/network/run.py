# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures all wrappers on links of several rates: `make bench-network`.

usage: python -m benchmarks.network.run [--quick] [--try]

Needs root, for namespaces of the network, and Linux. Two workers, a parameter
server and two rings of two, each a process on a host of its own; all are built
on links that are not shaped, and then make their steps one after the other, in
rounds. Writes benchmarks/results/network.json and a part of docs/speed.md.

--quick takes fewer cells of the slow links and fewer rounds, about a quarter of
an hour; all takes about three of them. --try takes a few seconds for a few
cells, prints the part and writes nothing: to see that everything works here.
"""

from __future__ import annotations

import pathlib
import signal
import sys
import tempfile
import time
from typing import Any

from benchmarks import machine
from benchmarks import page_part
from benchmarks import roles
from benchmarks.network import cells
from benchmarks.network import hosts
from benchmarks.network import page
from benchmarks.network import pictures

_WORKERS, _SERVER = (0, 1), 2
_START_SECS = 900.0
# Beyond a slot: two whole periods of the slowest cell, and a quiet link.
_SLOT_LIMIT_SECS = 300.0
_NOT_RUN = (
    'SyncReplicas, Horovod and contrib on shaped links',
    'several parameter servers, and more workers than two')


def measure(links: tuple[cells.Link, ...], is_quick: bool,
            log: pathlib.Path) -> dict[str, Any]:
  """Returns the cells' figures by link and name.

  Args:
    links: The links, from the fastest to the slowest.
    is_quick: Whether it is the quick selection.
    log: Where what the processes say goes.
  """
  results = {}
  with hosts.Hosts() as made:
    commands = {('ps', 0): _SERVER, **{
        (kind, task): task for kind in ('worker', *cells.RINGS)
        for task in _WORKERS}}
    with roles.running([made.command(host, [
        sys.executable, '-W', 'ignore', '-m', 'benchmarks.network.role', kind,
        str(task), ','.join(made.addresses)])
                        for (kind, task), host in commands.items()],
                       machine.ROOT, log) as processes:
      every = {key: roles.Role(process, f'{key[0]}:{key[1]}')
               for key, process in zip(commands, processes)}
      for (kind, task), role in every.items():
        role.answer(_START_SECS)
        print(f'{kind}:{task} is ready', flush=True)
      for link in links:
        made.shape(link.mbit)
        results[link.name] = _on(link, is_quick, every)
  return results


def _on(link, is_quick, every) -> dict:
  found = {}
  chosen = cells.selected(link, cells.CELLS + cells.RING_CELLS, is_quick)
  for turn in range(link.quick_rounds if is_quick else link.rounds):
    for cell in chosen:
      is_ring = cell in cells.RING_CELLS
      pair = [every[cell.name if is_ring else 'worker', task]
              for task in _WORKERS]
      begin = time.time() + 0.2
      for role in pair:
        role.ask(cell.name, begin, link.slot_secs,
                 link.ring_steps if is_ring else 0)
      rates, moved = zip(*(
          role.answer(link.slot_secs + _SLOT_LIMIT_SECS) for role in pair))
      figures = found.setdefault(cell.name, {'steps_per_sec': [], 'bytes': []})
      figures['steps_per_sec'].append(list(rates))
      figures['bytes'].append(
          None if None in moved else [sum(way) / 2 for way in zip(*moved)])
      print(f'{link.name}, round {turn + 1}: {cell.name}: '
            f'{sum(rates) / 2:.4g} steps/s per worker', flush=True)
  return found


def main(argv: list[str]) -> int:
  """Measures; returns the exit status."""
  if not set(argv) <= {'--quick', '--try'}:
    print(__doc__, file=sys.stderr)
    return 2
  why = hosts.missing()
  if why is not None:
    print(f'Nothing was run, and nothing is written: {why}. Not run: all '
          f'{len(cells.CELLS + cells.RING_CELLS)} cells on '
          f'{", ".join(link.name for link in cells.LINKS)}.', file=sys.stderr)
    return 1
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  about, is_try = machine.about(), '--try' in argv
  is_quick = is_try or '--quick' in argv
  with tempfile.TemporaryDirectory() as directory:
    log = pathlib.Path(directory, 'stderr')
    try:
      links = measure(cells.TRY if is_try else cells.LINKS, is_quick, log)
    finally:
      print(log.read_text() if log.exists() else '', file=sys.stderr, end='')
  from benchmarks.network import models
  results = {
      'about': about, 'seed': 0, 'model_bytes': models.MODEL_BYTES,
      'num_worker': models.NUM_WORKER, 'is_quick': is_quick, 'links': links,
      'not_run': [*_NOT_RUN, *(['the cells marked with - above']
                               if is_quick else [])]}
  if is_try:
    print(page.PART.section(results))
    return 0
  pictures.write(results)
  page.write(results)
  print(f'Wrote {page.PART.results} and a part of {page_part.PAGE}.')
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
