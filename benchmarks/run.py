# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks of this directory: `make bench`.

usage: python -m benchmarks.run [--repeats=3] [--contrib=PYTHON]
           [--horovod=PYTHON] [NAME...]

Each is a file NAME_benchmark.py and a process of its own, which prints its
figures as JSON; in each repeat all run once. Writes the table of docs/speed.md
and benchmarks/results/rows.json; with names it runs those, prints the table,
and writes nothing.

--contrib is a Python 3.7 with TensorFlow 1.15, for the originals' figures;
--horovod one that has Horovod beside all else: `make test-horovod` makes
.venv-horovod. Without them those rows are not run.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from benchmarks import machine
from benchmarks import rows
from benchmarks.network import summary

_SUFFIX = '_benchmark'
_CONTRIB = 'contrib'


class FailedError(Exception):
  """A benchmark has not given its figures."""


def names() -> list[str]:
  """Returns the names of all benchmarks, sorted."""
  directory = pathlib.Path(__file__).parent
  return sorted(path.stem[:-len(_SUFFIX)]
                for path in directory.glob(f'*{_SUFFIX}.py'))


def commands(chosen: Sequence[str], contrib: str | None = None,
             horovod: str | None = None) -> dict[str, list[str]]:
  """Returns what is to be run, by the prefix of its figures.

  Args:
    chosen: Of `names`, and `contrib`.
    contrib: A Python with the originals, or None.
    horovod: A Python with Horovod, or None.
  """
  found = {}
  for name in chosen:
    if name == _CONTRIB:
      continue
    python = horovod if name == 'cross_shard' and horovod else sys.executable
    found[name] = [python, '-m', f'benchmarks.{name}{_SUFFIX}']
    if name == 'clipping':
      found[f'{name} v1'] = [*found[name], 'v1']
  if _CONTRIB in chosen:
    module = ['-W', 'ignore', '-m', 'benchmarks.contrib_reference']
    if contrib:
      found[_CONTRIB] = [contrib, *module]
    found[f'as {_CONTRIB}'] = [sys.executable, *module]
  return found


def figures_of(prefix: str, command: Sequence[str]) -> dict[str, float]:
  """Runs a benchmark; returns its figures.

  Args:
    prefix: Of their names.
    command: The program.

  Raises:
    FailedError: It ends with an error.
  """
  # TensorFlow 2 sets it, and 1.15 would behave like 2 then.
  environ = {name: value for name, value in os.environ.items()
             if name != 'TF2_BEHAVIOR'}
  done = subprocess.run(command, cwd=machine.ROOT, stdout=subprocess.PIPE,
                        text=True, env=environ, check=False)
  if done.returncode:
    raise FailedError(f'{prefix} ended with status {done.returncode}.')
  return dict(_flat(prefix, json.loads(done.stdout[done.stdout.index('{'):])))


def _flat(prefix: str, figures: Mapping[str, Any],
          ) -> Iterator[tuple[str, float]]:
  for name, figure in figures.items():
    if isinstance(figure, Mapping):
      yield from _flat(f'{prefix}/{name}', figure)
    elif not isinstance(figure, str):  # A version is none.
      yield f'{prefix}/{name}', figure


def main(argv: Sequence[str]) -> int:
  """Measures; returns the exit status.

  Args:
    argv: The arguments.
  """
  parser = argparse.ArgumentParser(
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('names', nargs='*', metavar='NAME',
                      help=f'of {", ".join(names())}, {_CONTRIB}')
  parser.add_argument('--repeats', type=int, default=3)
  parser.add_argument('--contrib', metavar='PYTHON')
  parser.add_argument('--horovod', metavar='PYTHON')
  arguments = parser.parse_args(argv)
  every = [*names(), _CONTRIB]
  unknown = sorted(set(arguments.names) - set(every))
  if unknown:
    print(f'No such benchmark: {", ".join(unknown)}. There are: '
          f'{", ".join(every)}.', file=sys.stderr)
    return 2
  about, repeats = machine.about(), []
  chosen = commands(arguments.names or every, arguments.contrib,
                    arguments.horovod)
  for turn in range(arguments.repeats):
    repeats.append({})
    for prefix, command in chosen.items():
      try:
        found = figures_of(prefix, command)
      except FailedError as error:
        print(f'{error} Nothing is written.', file=sys.stderr)
        return 1
      repeats[-1].update(found)
      for name, figure in found.items():
        print(f'repeat {turn + 1}: {name}: {figure:.4g}', flush=True)
  results = {'about': about, 'repeats': repeats}
  if arguments.names:
    print(rows.PART.section(results))
  else:
    rows.PART.write(results)
    summary.write()
    print(f'Wrote {rows.PART.results} and {rows.PART.page}.')
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
