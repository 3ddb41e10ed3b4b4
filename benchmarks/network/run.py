# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures all wrappers on links of several rates: `make bench-network`.

Needs root, for namespaces of the network, and Linux. Two workers, a parameter
server and two rings of two, each a process on a host of its own; all are built
on the link that they are measured on, and then make their steps one after the
other, in rounds. Writes benchmarks/results/network.json and a part of
docs/speed.md.

--quick takes fewer cells of the slow links, not quite two hours; all takes
longer. --try takes a minute or two for a few cells, prints the
part and writes nothing: to see that everything works here.

--add takes names of cells, and adds rounds of these to the results that there
are, on all links that one of them was measured on: the middle of more rounds is
closer to what a long training does. A new cell is added beside one that was
measured. It has to be the same machine.

--contrib is a Python 3.7 with TensorFlow 1.15, for the originals' figures;
--horovod one that has Horovod beside all else: `make test-horovod` makes
.venv-horovod. Without them those cells are not run.
"""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import machine
from benchmarks import page_part
from benchmarks.network import aims
from benchmarks.network import cells
from benchmarks.network import hosts
from benchmarks.network import page
from benchmarks.network import pictures
from benchmarks.network import summary
from benchmarks.network import testbed


def _arguments(argv):
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.network.run', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  of_what = parser.add_mutually_exclusive_group()
  of_what.add_argument('--quick', action='store_true')
  of_what.add_argument('--try', action='store_true', dest='is_try')
  of_what.add_argument('--add', metavar='CELL', nargs='+', choices=[
      cell.name for cell in cells.STAYING_CELLS])
  parser.add_argument('--contrib', metavar='PYTHON')
  parser.add_argument('--horovod', metavar='PYTHON')
  arguments = parser.parse_args(argv)
  if arguments.add and (arguments.contrib or arguments.horovod):
    parser.error('--add has no rounds of contrib and of Horovod: leave out '
                 '--contrib and --horovod, or measure all anew, without --add')
  return arguments


def main(argv: list[str]) -> int:
  """Measures; returns the exit status."""
  arguments = _arguments(argv)
  why = hosts.missing()
  if why is not None:
    print(f'Nothing was run, and nothing is written: {why}. Not run: all '
          f'{len(cells.STAYING_CELLS)} cells on '
          f'{", ".join(link.name for link in cells.LINKS)}.', file=sys.stderr)
    return 1
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  about, is_quick = machine.about(), arguments.quick or arguments.is_try
  results = page.PART.read() if arguments.add else {
      'about': about, 'seed': 0, **testbed.MODEL, 'is_quick': is_quick,
      'not_run': list(_not_run(arguments)), 'come_apart': cells.COME_APART}
  if arguments.add:
    why = _no_addition(results, about, arguments.add)
    if why is not None:
      print(f'Nothing was run, and nothing is written: {why}.', file=sys.stderr)
      return 1
  with tempfile.TemporaryDirectory() as directory:
    log = pathlib.Path(directory, 'stderr')
    try:
      with hosts.Hosts() as made:
        bed = testbed.Testbed(made, log, arguments.contrib, arguments.horovod)
        if arguments.add:
          bed.add(results['links'], arguments.add)
          results.setdefault('added', []).append(
              {'about': about, 'cells': arguments.add})
        else:
          results['links'] = bed.measure(
              cells.TRY if arguments.is_try else cells.LINKS, is_quick)
    finally:
      print(log.read_text() if log.exists() else '', file=sys.stderr, end='')
  if arguments.is_try:
    print(page.PART.section(results))
    return 0
  page.write(results)
  summary.write()
  pictures.write(results)
  print(f'Wrote {page.PART.results} and a part of {page_part.PAGE}.')
  return 0


def _no_addition(results: page_part.Results | None, about: dict[str, Any],
                 names: list[str]) -> str | None:
  """Why rounds of cells cannot be added to results; None: they can."""
  if results is None:
    return f'there is no {page.PART.results} to add rounds to'
  if set(names).isdisjoint(set().union(*results['links'].values())):
    return (f'{page.PART.results} has no {", no ".join(sorted(names))} to '
            'add rounds to: name one that it has beside it, or measure all '
            'anew, without --add')
  for first, second, _ in aims.AIMS:
    if second != cells.LOCAL and (first in names) != (second in names):
      return (f'the page compares {first!r} with {second!r} of the same round: '
              'add both or neither')
  for what in ('machine', 'cores', 'python', 'tensorflow'):
    if about[what] != results['about'][what]:
      return (f'rounds that are added have to be of the same {what}, which is '
              f'{results["about"][what]} in {page.PART.results}. Received: '
              f'{about[what]}. Measure all anew, without --add')
  return None


def _not_run(arguments: argparse.Namespace) -> Iterator[str]:
  yield ('several parameter servers, and more workers than two, but for the '
         '[checks of the plan](#on-a-network-predicted)')
  if not arguments.contrib:
    yield 'contrib, for want of a Python with TensorFlow 1.15'
  if not arguments.horovod:
    yield 'Horovod, for want of a Python that has it'
  if arguments.quick:
    yield 'the cells marked with - above'


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
