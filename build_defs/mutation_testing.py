# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asks the tests of a file whether they notice a change of it.

usage: mutation_testing.py [--seed N] [--limit N] [--minutes N] [--jobs N]
                           [--paths PATH..]

Takes a sample of the mutants of the files below PATH, runs for each the tests
of its file that run the changed lines, in a copy of the repository, and writes
docs/mutants.md.

What has been run is kept in build/mutants.jsonl: a run that ended early, or
one with a larger limit, goes on from there. A survivor is run again when a test
of its file has changed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import json
import multiprocessing
import os
import pathlib
import posixpath
import sys
import time
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures

_ROOT = pathlib.Path(__file__).absolute().parent.parent
_PAGE = _ROOT / 'docs' / 'mutants.md'
if __name__ == '__main__':
  sys.path.insert(0, str(_ROOT))

from build_defs import equivalent_mutants  # noqa: E402 (the path comes first)
from build_defs import mutant_report  # noqa: E402 (likewise)
from build_defs import mutant_runs  # noqa: E402 (likewise)
from build_defs import mutants as mutants_lib  # noqa: E402 (likewise)
from build_defs import tests_of_files  # noqa: E402 (likewise)

PATHS = ('tfplugin/ops', 'tfplugin/optimizers', 'tfplugin/distribute',
         'tfplugin/estimator')
# Imported before a process is forked: the tests' time is then their own.
_PRELOADED = ('numpy', 'pytest', 'tensorflow', 'keras', 'tensorflow_estimator')


def all_mutants(root: pathlib.Path,
                paths: Sequence[str]) -> list[mutants_lib.Mutant]:
  """Returns the mutants of the files at or below `paths`, sorted by file.

  A package's `__init__.py` is left out: api_test.py knows its names.
  """
  files = {file for path in paths for file in (
      [root / path] if path.endswith('.py') else (root / path).rglob('*.py'))}
  return [mutant for file in sorted(files)
          if file.name != '__init__.py' for mutant in mutants_lib.mutants(
              file.relative_to(root).as_posix(),
              file.read_text(encoding='utf-8'))]


def sample(population: Sequence[mutants_lib.Mutant], seed: int,
           limit: int) -> list[mutants_lib.Mutant]:
  """Returns `limit` mutants; a larger limit takes the same, and more.

  Each has a place by its own text: the rest of the sample stays when a file
  changes.
  """
  seen = collections.Counter()
  places = []
  for mutant in population:
    key = mutant.before, *mutant.key
    seen[key] += 1
    places.append(mutant_runs.digest(str(seed), str(seen[key]), *key))
  return [mutant for _, mutant in sorted(
      zip(places, population), key=lambda pair: pair[0])][:limit]


class Kept:
  """The outcomes that were found before.

  Args:
    path: The file that has them; a line of JSON for each.
  """

  def __init__(self, path: pathlib.Path):
    self._path = path
    lines = path.read_text().splitlines() if path.exists() else []
    self._outcomes = {mutant: outcome
                      for mutant, *outcome in map(json.loads, lines)}

  def get(self, mutant: mutants_lib.Mutant, tests: str) -> str:
    """Returns an outcome; an empty string if it has to be found."""
    outcome, of_tests = self._outcomes.get(
        mutant_runs.digest(mutant.file, mutant.text), ('', ''))
    return outcome if outcome == 'killed' or of_tests == tests else ''

  def put(self, mutant: mutants_lib.Mutant, tests: str, outcome: str) -> None:
    """Adds an outcome."""
    key = mutant_runs.digest(mutant.file, mutant.text)
    self._outcomes[key] = [outcome, tests]
    self._path.parent.mkdir(exist_ok=True)
    with self._path.open('a') as file:
      file.write(json.dumps([key, outcome, tests]) + '\n')


class Runs:
  """The runs of mutants of one repository.

  Args:
    root: The repository.
    minutes: After which time no other mutant is begun.
  """

  def __init__(self, root: pathlib.Path, minutes: float):
    self._root = root
    self._end = time.monotonic() + 60 * minutes

  def outcomes(self, chosen: Sequence[mutants_lib.Mutant]) -> Iterator[str]:
    """Yields `killed`, `survived`, `equivalent` or an empty string."""
    kept = Kept(self._path)
    for mutant in chosen:
      yield ('equivalent' if mutant.key in equivalent_mutants.REASONS
             else kept.get(mutant, self._digest_of_tests(mutant.file)))

  def run(self, chosen: Sequence[mutants_lib.Mutant]) -> None:
    """Runs mutants and keeps the outcomes."""
    kept = Kept(self._path)
    with contextlib.closing(mutant_runs.Copy(self._root)) as copy:
      for mutant in chosen:
        if time.monotonic() < self._end:
          start = time.monotonic()
          outcome = 'killed' if copy.is_killed(mutant, tests_of_files.tests_of(
              self._root, mutant.file)) else 'survived'
          kept.put(mutant, self._digest_of_tests(mutant.file), outcome)
          print(f'{outcome} in {time.monotonic() - start:.0f} s: {mutant.file}:'
                f'{mutant.line}: {mutant.after}', flush=True)

  @property
  def _path(self) -> pathlib.Path:
    return self._root / 'build' / 'mutants.jsonl'

  def _digest_of_tests(self, file: str) -> str:
    return mutant_runs.digest(*(
        (self._root / test).read_text(encoding='utf-8')
        for arguments in tests_of_files.tests_of(self._root, file)
        for test in tests_of_files.files_of(arguments)))


def run(root: pathlib.Path, chosen: Sequence[mutants_lib.Mutant],
        minutes: float, jobs: int = 1, preloaded: Sequence[str] = _PRELOADED,
        ) -> list[tuple[mutants_lib.Mutant, str]]:
  """Returns each mutant with its outcome.

  Args:
    root: The repository.
    chosen: The mutants.
    minutes: After which time no other mutant is begun.
    jobs: How many may run at a time; those of one folder run in one process.
    preloaded: Modules to import before a process is forked.

  Returns:
    Pairs of a mutant and `killed`, `survived`, `equivalent`, or `not run`.
  """
  runs = Runs(root, minutes)
  folders = collections.defaultdict(list)
  for mutant, outcome in zip(chosen, runs.outcomes(chosen)):
    if not outcome:
      folders[posixpath.dirname(mutant.file)].append(mutant)
  os.environ.update(mutant_runs.ENVIRONMENT)
  for name in preloaded:
    importlib.import_module(name)
  with futures.ProcessPoolExecutor(
      jobs, multiprocessing.get_context('fork')) as pool:
    list(pool.map(runs.run, sorted(folders.values(), key=len, reverse=True)))
  return [(mutant, outcome or 'not run')
          for mutant, outcome in zip(chosen, runs.outcomes(chosen))]


def main(arguments: Sequence[str]) -> None:
  """Runs a sample and writes the page."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--limit', type=int, default=300)
  parser.add_argument('--minutes', type=float, default=600)
  parser.add_argument('--jobs', type=int, default=1)
  parser.add_argument('--paths', nargs='+', default=list(PATHS))
  options = parser.parse_args(arguments)
  population = all_mutants(_ROOT, options.paths)
  if not population:
    parser.error('`--paths` must name sources below the repository. Received: '
                 f'{" ".join(options.paths)}. Leave it out for all.')
  outcomes = run(_ROOT, sample(population, options.seed, options.limit),
                 options.minutes, options.jobs)
  _PAGE.write_text(mutant_report.render(
      outcomes, len(population), options.seed, options.paths))


if __name__ == '__main__':
  main(sys.argv[1:])
