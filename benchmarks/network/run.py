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

from benchmarks import machine
from benchmarks import page_part
from benchmarks.network import cells
from benchmarks.network import hosts
from benchmarks.network import page
from benchmarks.network import pictures
from benchmarks.network import testbed


def main(argv: list[str]) -> int:
  """Measures; returns the exit status."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.network.run', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--quick', action='store_true')
  parser.add_argument('--try', action='store_true', dest='is_try')
  parser.add_argument('--contrib', metavar='PYTHON')
  parser.add_argument('--horovod', metavar='PYTHON')
  arguments = parser.parse_args(argv)
  why = hosts.missing()
  if why is not None:
    print(f'Nothing was run, and nothing is written: {why}. Not run: all '
          f'{len(cells.STAYING_CELLS)} cells on '
          f'{", ".join(link.name for link in cells.LINKS)}.', file=sys.stderr)
    return 1
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
  about, is_quick = machine.about(), arguments.quick or arguments.is_try
  with tempfile.TemporaryDirectory() as directory:
    log = pathlib.Path(directory, 'stderr')
    try:
      with hosts.Hosts() as made:
        links = testbed.Testbed(
            made, log, arguments.contrib, arguments.horovod).measure(
                cells.TRY if arguments.is_try else cells.LINKS, is_quick)
    finally:
      print(log.read_text() if log.exists() else '', file=sys.stderr, end='')
  results = {
      'about': about, 'seed': 0, **testbed.MODEL, 'is_quick': is_quick,
      'links': links, 'not_run': list(_not_run(arguments)),
      'come_apart': cells.COME_APART}
  if arguments.is_try:
    print(page.PART.section(results))
    return 0
  page.write(results)
  pictures.write(results)
  print(f'Wrote {page.PART.results} and a part of {page_part.PAGE}.')
  return 0


def _not_run(arguments: argparse.Namespace) -> Iterator[str]:
  yield 'several parameter servers, and more workers than two'
  if not arguments.contrib:
    yield 'contrib, for want of a Python with TensorFlow 1.15'
  if not arguments.horovod:
    yield 'Horovod, for want of a Python that has it'
  if arguments.quick:
    yield 'the cells marked with - above'


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
