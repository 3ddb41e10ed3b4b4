# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asks the tests of a file whether they notice a change of it.

usage: mutation_testing.py [--seed N] [--limit N] [--minutes N] [--paths PATH..]

Takes a sample of the mutants of the files below PATH, runs for each the tests
of its file, in a copy of the repository, and writes docs/mutants.md. TensorFlow
is imported once; a process is forked for each mutant.

What has been run is kept in build/mutants.jsonl: a run that ended early, or
one with a larger limit, goes on from there. A survivor is run again when a test
of its file has changed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Sequence

_ROOT = pathlib.Path(__file__).absolute().parent.parent
_PAGE = _ROOT / 'docs' / 'mutants.md'
if __name__ == '__main__':
  sys.path.insert(0, str(_ROOT))

from build_defs import equivalent_mutants  # noqa: E402 (the path comes first)
from build_defs import mutant_report  # noqa: E402 (likewise)
from build_defs import mutants as mutants_lib  # noqa: E402 (likewise)
from build_defs import tests_of_files  # noqa: E402 (likewise)

PATHS = ('tfplugin/ops', 'tfplugin/optimizers', 'tfplugin/distribute',
         'tfplugin/estimator')
# Imported before a process is forked: the tests' time is then their own.
_PRELOADED = ('numpy', 'pytest', 'tensorflow', 'keras', 'tensorflow_estimator')
_NOT_COPIED = shutil.ignore_patterns(
    '.*', '__pycache__', 'build', 'dist', 'runs', '*.egg-info')
# As tests/conftest.py sets it, before TensorFlow is imported.
_ENVIRONMENT = {'TF_CPP_MIN_LOG_LEVEL': '2', 'TF_ENABLE_ONEDNN_OPTS': '0',
                'PYTHONDONTWRITEBYTECODE': '1'}
# A mutant that takes this many times as long as its file, and more, hangs.
_SLOWER, MORE_SECS = 4, 20
_LIMIT_SECS = 3600


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
  """Returns `limit` mutants; a larger limit takes the same, and more."""
  shuffled = list(population)
  random.Random(seed).shuffle(shuffled)
  return shuffled[:limit]


class Copy:
  """A copy of the repository, in which mutants are run one by one.

  Args:
    root: The repository.
    preloaded: Modules to import before a process is forked.
  """

  def __init__(self, root: pathlib.Path,
               preloaded: Sequence[str] = _PRELOADED):
    self._root = root
    self._directory = pathlib.Path(tempfile.mkdtemp(prefix='mutants-'))
    self._tree = self._directory / 'tree'
    shutil.copytree(root, self._tree, ignore=_NOT_COPIED)
    self._usual_secs: dict[tests_of_files.Arguments, float] = {}
    os.environ.update(_ENVIRONMENT)
    for name in preloaded:
      importlib.import_module(name)

  def close(self) -> None:
    """Deletes the copy."""
    shutil.rmtree(self._directory)

  def is_killed(self, mutant: mutants_lib.Mutant,
                tests: tests_of_files.Arguments) -> bool:
    """Returns whether one of the tests fails, or does not end, with a change.

    Args:
      mutant: What to change.
      tests: What to call pytest with.

    Raises:
      RuntimeError: the tests fail without a change, too, or there are none.
    """
    usual_secs = self._time_without_change(tests)
    file = self._tree / mutant.file
    source = file.read_text(encoding='utf-8')
    file.write_text(mutant.text, encoding='utf-8')
    try:
      return bool(self._run(tests, _SLOWER * usual_secs + MORE_SECS))
    finally:
      file.write_text(source, encoding='utf-8')

  def _time_without_change(self, tests: tests_of_files.Arguments) -> float:
    if tests not in self._usual_secs:
      start = time.monotonic()
      if self._run(tests, _LIMIT_SECS):
        log = self._log.read_text(errors='replace')[-4000:]
        raise RuntimeError('The tests must pass before a change is made. '
                           f'Received: {" ".join(tests)}\n{log}')
      self._usual_secs[tests] = time.monotonic() - start
    return self._usual_secs[tests]

  @property
  def _log(self) -> pathlib.Path:
    return self._directory / 'log'

  def _run(self, tests: tests_of_files.Arguments, limit_secs: float) -> int:
    """Runs tests in a process of its own; returns its status, -1 if it hung."""
    child = os.fork()
    if not child:
      self._become_pytest(tests)
    try:
      return _wait(child, limit_secs)
    finally:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # What a test has left behind.

  def _become_pytest(self, tests: tests_of_files.Arguments) -> None:
    """Runs pytest in the copy, and ends this process."""
    status = 1
    try:
      os.setsid()
      log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
      for stream in (1, 2):
        os.dup2(log, stream)
      os.chdir(self._tree)
      sys.dont_write_bytecode = True
      originals = (self._root, _ROOT, _ROOT / 'build_defs')
      sys.path[:] = [str(self._tree), *(
          path for path in sys.path if pathlib.Path(path) not in originals)]
      for name in [n for n in sys.modules if n.split('.')[0] == 'build_defs']:
        del sys.modules[name]
      import pytest
      status = pytest.main(['-x', '-q', '-p', 'no:cacheprovider', '--rootdir',
                            str(self._tree), *tests])
    finally:
      for stream in (sys.stdout, sys.stderr):
        stream.flush()  # `_exit` does not.
      os._exit(int(status))


def _wait(child: int, limit_secs: float) -> int:
  """Returns the status of a process; -1 if it has not ended in time."""
  deadline = time.monotonic() + limit_secs
  while time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
      return status
    time.sleep(0.02)
  os.killpg(child, signal.SIGKILL)
  os.waitpid(child, 0)
  return -1


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
    outcome, of_tests = self._outcomes.get(_digest(mutant.file, mutant.text),
                                           ('', ''))
    return outcome if outcome == 'killed' or of_tests == tests else ''

  def put(self, mutant: mutants_lib.Mutant, tests: str, outcome: str) -> None:
    """Adds an outcome."""
    key = _digest(mutant.file, mutant.text)
    self._outcomes[key] = [outcome, tests]
    self._path.parent.mkdir(exist_ok=True)
    with self._path.open('a') as file:
      file.write(json.dumps([key, outcome, tests]) + '\n')


def _digest(*texts: str) -> str:
  return hashlib.sha256('\0'.join(texts).encode()).hexdigest()[:20]


def run(root: pathlib.Path, chosen: Sequence[mutants_lib.Mutant],
        minutes: float, preloaded: Sequence[str] = _PRELOADED,
        ) -> Iterator[tuple[mutants_lib.Mutant, str]]:
  """Yields each mutant with its outcome.

  Args:
    root: The repository.
    chosen: The mutants.
    minutes: After which time no other mutant is begun.
    preloaded: Modules to import before a process is forked.

  Yields:
    A mutant, and `killed`, `survived`, `equivalent`, or `not run`.
  """
  end = time.monotonic() + 60 * minutes
  kept = Kept(root / 'build' / 'mutants.jsonl')
  with contextlib.closing(Copy(root, preloaded)) as copy:
    for mutant in chosen:
      tests = tests_of_files.tests_of(root, mutant.file)
      digest = _digest(*((root / file).read_text() for arguments in tests
                         for file in tests_of_files.files_of(arguments)))
      outcome = ('equivalent' if mutant.key in equivalent_mutants.REASONS
                 else kept.get(mutant, digest))
      if not outcome and time.monotonic() < end:
        outcome = 'killed' if any(
            copy.is_killed(mutant, each) for each in tests) else 'survived'
        kept.put(mutant, digest, outcome)
      yield mutant, outcome or 'not run'


def main(arguments: Sequence[str]) -> None:
  """Runs a sample and writes the page."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument('--limit', type=int, default=300)
  parser.add_argument('--minutes', type=float, default=600)
  parser.add_argument('--paths', nargs='+', default=list(PATHS))
  options = parser.parse_args(arguments)
  population = all_mutants(_ROOT, options.paths)
  if not population:
    parser.error('`--paths` must name sources below the repository. Received: '
                 f'{" ".join(options.paths)}. Leave it out for all.')
  chosen = sample(population, options.seed, options.limit)
  outcomes = []
  for mutant, outcome in run(_ROOT, chosen, options.minutes):
    outcomes.append((mutant, outcome))
    print(f'{len(outcomes)}/{len(chosen)} {outcome}: {mutant.file}:'
          f'{mutant.line}: {mutant.after}', flush=True)
  _PAGE.write_text(mutant_report.render(
      outcomes, len(population), options.seed, options.paths))


if __name__ == '__main__':
  main(sys.argv[1:])
