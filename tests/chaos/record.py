# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plays the matrix of faults, and writes docs/chaos.md.

  python -m tests.chaos.record [--words WORD.. [--merge]] [--jobs N]

With words only the cells with all of them in their names are played, and the
page is left as it is. With `--merge` their rows in the page are new, and the
other rows stay.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pathlib
import sys
import tempfile
import traceback
from concurrent import futures

from tests.chaos import cells
from tests.chaos import page
from tests.chaos import play
from tests.forks import forked_programs


def _play(cell: cells.Cell) -> tuple[cells.Cell, play.Outcome, str]:
  """Returns the cell, what came of it, and what went wrong."""
  with tempfile.TemporaryDirectory() as directory, forked_programs.forking():
    try:
      return cell, play.play(cell, pathlib.Path(directory)), ''
    except Exception:  # noqa: BLE001 (the other cells are played)
      logs = sorted(pathlib.Path(directory, 'logs').glob('*.log'))
      return cell, None, traceback.format_exc() + ''.join(
          f'\n{log.name}:\n{log.read_text()[-2000:]}' for log in logs)


def main(arguments: argparse.Namespace) -> int:
  """Plays; returns the exit status."""
  chosen = [cell for cell in cells.matrix()
            if all(word in cell.name for word in arguments.words)]
  outcomes, failed = {}, 0
  with futures.ProcessPoolExecutor(
      arguments.jobs, multiprocessing.get_context('spawn')) as pool:
    for future in futures.as_completed(
        [pool.submit(_play, cell) for cell in chosen]):
      cell, outcome, error = future.result()
      outcomes[cell] = outcome
      failed += outcome is None
      _say(f'{len(outcomes)} of {len(chosen)}: {cell.name}: '
           f'{page.summary(outcome) if outcome else error}')
  if arguments.merge or not arguments.words:
    if arguments.merge:
      outcomes = {**page.read(page.PATH.read_text()), **outcomes}
    page.PATH.write_text(page.render(outcomes))
  _say(f'{failed} of {len(chosen)} failed.')
  return bool(failed)


def _say(line: str) -> None:
  sys.stdout.write(f'{line}\n')
  sys.stdout.flush()


if __name__ == '__main__':
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--words', nargs='*', default=[])
  parser.add_argument('--merge', action='store_true')
  parser.add_argument('--jobs', type=int, default=3)
  sys.exit(main(parser.parse_args()))
