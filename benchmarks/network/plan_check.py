# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares `tfplugin-plan` with four workers and two parameter servers.

usage: python -m benchmarks.network.plan_check

Needs root and Linux, as `make bench-network` does, and takes some minutes.
Each worker and each server is a process on a host of its own, and the workers
form a ring, too. Writes benchmarks/results/plan_check.json and a part of
docs/speed.md.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from collections.abc import Iterator

from benchmarks import machine
from benchmarks import page_part
from benchmarks.network import cells
from benchmarks.network import figures
from benchmarks.network import hosts
from benchmarks.network import page
from benchmarks.network import testbed


def _lines(results: figures.Results) -> Iterator[str]:
  links = [link for link in cells.PLAN if link.name in results['links']]
  yield (f'The same model with {results["num_worker"]} workers and '
         f'{results["num_ps"]} parameter servers: steps per second of each '
         'worker, measured, with the least and the largest of the rounds, and '
         'the error of the prediction. Each variable is on the server that has '
         'the fewest bytes so far. '
         '`python -m benchmarks.network.plan_check` on '
         f'{machine.sentence(results["about"])}')
  names = [cell.name for cell in cells.STAYING_CELLS if any(
      cell.name in results['links'][link.name] for link in links)]
  tasks = f'{results["num_worker"]} workers, {results["num_ps"]} servers'
  yield from page_part.table(
      f'steps/s, {tasks}', [link.name for link in links], [
          (name, [figures.shown(results, link, name) for link in links])
          for name in names])
  yield from page.errors(results, links, f'predicted, {tasks}')


PART = page_part.PagePart(
    'plan_check', '',
    'Not measured yet: `python -m benchmarks.network.plan_check`.', _lines)


def main() -> int:
  """Measures; returns the exit status."""
  why = hosts.missing()
  if why is not None:
    print(f'Nothing was run, and nothing is written: {why}.', file=sys.stderr)
    return 1
  about = machine.about()
  with tempfile.TemporaryDirectory() as directory:
    log = pathlib.Path(directory, 'stderr')
    try:
      with hosts.Hosts(cells.PLAN_WORKERS + cells.PLAN_SERVERS) as made:
        links = testbed.Testbed(
            made, log, num_worker=cells.PLAN_WORKERS).measure(cells.PLAN, True)
    finally:
      print(log.read_text() if log.exists() else '', file=sys.stderr, end='')
  PART.write({'about': about, **testbed.MODEL, 'links': links,
              'num_worker': cells.PLAN_WORKERS, 'num_ps': cells.PLAN_SERVERS,
              'come_apart': cells.COME_APART})
  return 0


if __name__ == '__main__':
  sys.exit(main())
