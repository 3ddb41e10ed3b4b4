# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tests run which lines, and how long each test takes.

`Recorder` finds out while pytest runs, `Lines` has what was found, and `Chosen`
has pytest run some tests, in an order.
"""

from __future__ import annotations

import json
import pathlib
import sys
import threading
import time
from collections.abc import Sequence

import pytest

# A test that starts an interpreter may run any line there.
_INTERPRETER = ('subprocess.Popen', 0)
# What AutoGraph makes of a function runs in a file of its own.
_CONVERTED = 'tf__'


class Recorder:
  """A plugin of pytest that watches the lines of the sources.

  Tests that share a fixture count as one: the first of them runs the lines.

  Args:
    root: The sources are in `tfplugin` below it.
  """

  def __init__(self, root: pathlib.Path):
    self._root = f'{root}/'
    self._folder = f'{root}/tfplugin/'
    self._seconds: dict[str, float] = {}
    self._groups: dict[str, str] = {}
    self._executed: dict[str, set] = {'': set()}  # '': by an import.
    self._now = self._executed['']

  def start(self) -> None:
    """Begins to watch this process."""
    sys.addaudithook(self._event)
    threading.settrace(self._call)
    sys.settrace(self._call)

  @pytest.hookimpl(wrapper=True)
  def pytest_runtest_protocol(self, item):
    """Notes the test's time and lines."""
    start = time.monotonic()
    group = _group(item)
    self._groups[item.nodeid] = group
    self._now = self._executed.setdefault(group, set())
    try:
      return (yield)
    finally:
      self._seconds[item.nodeid] = time.monotonic() - start

  def write(self, path: pathlib.Path) -> None:
    """Ends, and writes what `Lines` reads."""
    sys.settrace(None)
    threading.settrace(None)
    executed = {group: sorted((name.removeprefix(self._root), line)
                              for name, line in list(lines))
                for group, lines in self._executed.items()}
    path.write_text(json.dumps([self._seconds, self._groups, executed]))

  def _event(self, event, arguments):
    if event == _INTERPRETER[0] and sys.executable in map(str, arguments[1]):
      self._now.add(_INTERPRETER)

  def _call(self, frame, event, argument):
    code = frame.f_code
    if code.co_filename.startswith(self._folder):
      return self._line(frame, event, argument)
    if code.co_name.startswith(_CONVERTED):
      self._now.add((code.co_name, 0))
    return None

  def _line(self, frame, event, argument):
    del event, argument
    self._now.add((frame.f_code.co_filename, frame.f_lineno))
    return self._line


def _group(item) -> str:
  """Returns the name of those that share a fixture with a test, or its own."""
  info = item._fixtureinfo  # noqa: SLF001 (nothing else tells the scope)
  is_shared = any(each.scope in ('module', 'class') and each.baseid
                  for found in info.name2fixturedefs.values() for each in found)
  return item.nodeid.split('[')[0] if is_shared else item.nodeid


class Lines:
  """The lines that each test runs.

  Args:
    path: What `Recorder.write` has written.
  """

  def __init__(self, path: pathlib.Path):
    self._seconds, self._groups, executed = json.loads(path.read_text())
    self._executed = {group: {tuple(line) for line in lines}
                      for group, lines in executed.items()}

  def tests_of(self, file: str, function: str,
               lines: tuple[int, int] | None) -> list[str]:
    """Returns the tests that run one of some lines, the quickest first.

    Those that share a fixture stay together, as last.

    Args:
      file: The source.
      function: The function of it that is asked for, dotted.
      lines: The first and the last of its lines; None for all of the file's.
    """
    # A function inside of a converted one is converted with it.
    wanted = {_INTERPRETER, *(
        (_CONVERTED + name, 0) for name in function.split('.'))}
    wanted |= {(file, line) for line in range(lines[0], lines[1] + 1)
              } if lines else set()
    groups = [group for group, executed in self._executed.items()
              if not lines or wanted & executed]
    return sorted((test for test, group in self._groups.items()
                   if group in groups or '' in groups), key=self._order)

  def seconds_of(self, tests: Sequence[str]) -> float:
    """Returns how long some of the tests take."""
    return sum(self._seconds[test] for test in tests)

  def _order(self, test: str) -> tuple:
    group = self._groups[test]
    if group == test:
      return 0, self._seconds[test], test
    return 1, group, self._seconds[test], test


class Chosen:
  """A plugin of pytest that runs the tests of a list, in its order.

  Args:
    tests: Their names; one that is not there any more is left out.
  """

  def __init__(self, tests: Sequence[str]):
    self._tests = tests

  @pytest.hookimpl(trylast=True)
  def pytest_collection_modifyitems(self, items):
    """Replaces the tests that were found."""
    found = {item.nodeid: item for item in items}
    items[:] = [found[test] for test in self._tests if test in found]
