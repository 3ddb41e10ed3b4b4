# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs mutants in a copy of the repository, one by one.

TensorFlow is imported once; a process is forked for each mutant. The tests are
run once without a change, to see which of them run which line. Of these, a
mutant gets the ones that run its lines, the quickest first.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from collections.abc import Sequence

from build_defs import executed_lines
from build_defs import mutants as mutants_lib
from build_defs import tests_of_files

# As tests/conftest.py sets it, before TensorFlow is imported; and the sample of
# the tests that `make test` runs.
ENVIRONMENT = {'TF_CPP_MIN_LOG_LEVEL': '2', 'TF_ENABLE_ONEDNN_OPTS': '0',
               'PYTHONDONTWRITEBYTECODE': '1', 'TEST_SAMPLE': '0'}
# A mutant that takes this many times as long as its tests, and more, hangs.
_SLOWER, MORE_SECS = 4, 20
_LIMIT_SECS = 3600
_NOT_COPIED = shutil.ignore_patterns(
    '.*', '__pycache__', 'build', 'dist', 'runs', '*.egg-info')


class Copy:
  """A copy of the repository.

  Args:
    root: The repository; what the tests run is kept in its folder `build`.
  """

  def __init__(self, root: pathlib.Path):
    self._root = root
    self._directory = pathlib.Path(tempfile.mkdtemp(prefix='mutants-'))
    self._tree = self._directory / 'tree'
    self._records = root / 'build' / 'mutants'
    self._records.mkdir(parents=True, exist_ok=True)
    shutil.copytree(root, self._tree, ignore=_NOT_COPIED)
    compileall.compile_dir(self._tree / 'tfplugin', quiet=1)
    self._sources = digest(*(
        file.read_text(encoding='utf-8')
        for file in sorted((root / 'tfplugin').rglob('*.py'))))

  def close(self) -> None:
    """Deletes the copy."""
    shutil.rmtree(self._directory)

  def is_killed(self, mutant: mutants_lib.Mutant,
                tests: Sequence[tests_of_files.Arguments]) -> bool:
    """Returns whether a test fails, or does not end, with a change.

    A line that no test was seen to run may be that of an op, as of
    `tf.numpy_function`: a thread of C++ calls it, which is not watched. The
    file's own tests are run for it, all of them.

    Args:
      mutant: What to change.
      tests: What to call pytest with, one after the other, until one fails;
        the file's own tests first.

    Raises:
      RuntimeError: the tests fail without a change, too, or there are none.
    """
    is_seen = False
    for arguments in tests:
      chosen = self._lines(arguments).tests_of(
          mutant.file, mutant.function, mutant.lines)
      is_seen = is_seen or bool(chosen)
      if chosen and self._fails(mutant, arguments, chosen):
        return True
    return not is_seen and self._fails(
        mutant, tests[0], self._lines(tests[0]).tests_of(
            mutant.file, mutant.function, None))

  def _fails(self, mutant: mutants_lib.Mutant,
             tests: tests_of_files.Arguments, chosen: Sequence[str]) -> bool:
    lines = self._lines(tests)
    file = self._tree / mutant.file
    source = file.read_text(encoding='utf-8')
    file.write_text(mutant.text, encoding='utf-8')
    try:
      return bool(self._run(
          lambda: _pytest(tests,
                          executed_lines.Chosen(chosen)),
          _SLOWER * lines.seconds_of(chosen) + MORE_SECS))
    finally:
      file.write_text(source, encoding='utf-8')

  def _lines(self, tests: tests_of_files.Arguments) -> executed_lines.Lines:
    """Returns what tests run without a change; they are run once for it."""
    path = self._records / digest(self._sources, *tests, *(
        (self._root / file).read_text(encoding='utf-8')
        for file in tests_of_files.files_of(tests)))
    if not path.exists() and self._run(
        lambda: _record(self._tree, tests, path), _LIMIT_SECS):
      log = self._log.read_text(errors='replace')[-4000:]
      raise RuntimeError('The tests must pass before a change is made. '
                         f'Received: {" ".join(tests)}\n{log}')
    return executed_lines.Lines(path)

  @property
  def _log(self) -> pathlib.Path:
    return self._directory / 'log'

  def _run(self, function: Callable[[], int], limit_secs: float) -> int:
    """Runs tests in a process of its own; returns its status, -1 if it hung."""
    child = os.fork()
    if not child:
      self._become(function)
    try:
      return _wait(child, limit_secs)
    finally:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # What a test has left behind.

  def _become(self, function: Callable[[], int]) -> None:
    """Calls a function in the copy, and ends this process."""
    status = 1
    try:
      os.setsid()
      log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
      for stream in (1, 2):
        os.dup2(log, stream)
      os.chdir(self._tree)
      sys.dont_write_bytecode = True
      here = pathlib.Path(__file__).absolute().parent
      originals = (self._root, here.parent, here)
      sys.path[:] = [str(self._tree), *(
          path for path in sys.path if pathlib.Path(path) not in originals)]
      for name in [n for n in sys.modules if n.split('.')[0] == 'build_defs']:
        del sys.modules[name]
      status = function()
    finally:
      for stream in (sys.stdout, sys.stderr):
        stream.flush()  # `_exit` does not.
      os._exit(int(status))


def digest(*texts: str) -> str:
  """Returns a short name for some texts."""
  return hashlib.sha256('\0'.join(texts).encode()).hexdigest()[:20]


def _pytest(arguments: Sequence[str], plugin: object) -> int:
  import pytest
  return pytest.main(['-x', '-q', '-p', 'no:cacheprovider', '--rootdir', '.',
                      *arguments], plugins=[plugin])


def _record(tree: pathlib.Path, tests: tests_of_files.Arguments,
            path: pathlib.Path) -> int:
  recorder = executed_lines.Recorder(tree)
  recorder.start()
  status = _pytest(tests, recorder)
  if not status:
    recorder.write(path)
  return status


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
