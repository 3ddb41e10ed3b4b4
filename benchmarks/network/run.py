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

import contextlib
import json
import os
import pathlib
import platform
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from benchmarks.network import cells
from benchmarks.network import hosts
from benchmarks.network import page

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_WORKERS, _SERVER = (0, 1), 2
_START_SECS = 900.0
# Beyond a slot: two whole periods of the slowest cell, and a quiet link.
_SLOT_LIMIT_SECS = 300.0
_NOT_RUN = (
    'SyncReplicas, Horovod and contrib on shaped links',
    'several parameter servers, and more workers than two')


class _Role:
  """A process that answers."""

  def __init__(self, process: subprocess.Popen, name: str):
    self._process, self._name = process, name
    self._answers = queue.Queue()
    threading.Thread(target=self._read, daemon=True).start()

  def _read(self):
    with contextlib.suppress(ValueError):  # Closed at the end.
      for line in self._process.stdout:
        self._answers.put(line)
    self._answers.put('')

  def ask(self, *request: Any) -> None:
    self._process.stdin.write(json.dumps(request) + '\n')
    self._process.stdin.flush()

  def answer(self, limit_secs: float) -> Any:
    try:
      line = self._answers.get(timeout=limit_secs)
    except queue.Empty:
      raise TimeoutError(
          f'{self._name} did not answer in {limit_secs:g} s.') from None
    if not line:
      raise RuntimeError(f'{self._name} ended with status '
                         f'{self._process.wait()}.')
    return json.loads(line)


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
    with hosts.running([made.command(host, [
        sys.executable, '-W', 'ignore', '-m', 'benchmarks.network.role', kind,
        str(task), ','.join(made.addresses)])
                        for (kind, task), host in commands.items()],
                       _ROOT, log) as processes:
      roles = {key: _Role(process, f'{key[0]}:{key[1]}')
               for key, process in zip(commands, processes)}
      for (kind, task), role in roles.items():
        role.answer(_START_SECS)
        print(f'{kind}:{task} is ready', flush=True)
      for link in links:
        made.shape(link.mbit)
        results[link.name] = _on(link, is_quick, roles)
  return results


def _on(link, is_quick, roles) -> dict:
  found = {}
  chosen = cells.selected(link, cells.CELLS + cells.RING_CELLS, is_quick)
  for turn in range(link.quick_rounds if is_quick else link.rounds):
    for cell in chosen:
      is_ring = cell in cells.RING_CELLS
      pair = [roles[cell.name if is_ring else 'worker', task]
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


def _about() -> dict[str, Any]:
  """The machine, the versions and the commit."""
  import tensorflow as tf
  models = [line.partition(':')[2].strip() for line in pathlib.Path(
      '/proc/cpuinfo').read_text().splitlines()
            if line.startswith('model name')]
  return {
      'machine': models[0] if models else platform.machine(),
      'cores': os.cpu_count(), 'kernel': platform.release(),
      'load_before': os.getloadavg()[0],
      'python': platform.python_version(), 'tensorflow': tf.__version__,
      'commit': subprocess.run(
          ['git', 'describe', '--always', '--dirty'], cwd=_ROOT,
          capture_output=True, text=True, check=False).stdout.strip()}


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
  about, is_try = _about(), '--try' in argv
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
    print(page.section(results))
    return 0
  page.RESULTS.parent.mkdir(exist_ok=True)
  page.RESULTS.write_text(json.dumps(results, indent=1) + '\n')
  page.write()
  print(f'Wrote {page.RESULTS} and a part of {page.PAGE}.')
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
