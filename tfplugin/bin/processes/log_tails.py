# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Last lines of a failed task's log, without noise and with a remedy."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence

_TAIL_LINES = 20
# A longer message is not compared to its end.
_MOST_LINES = 1000

# Errors about the missing Estimator, from TensorFlow 2.16 on.
_NO_ESTIMATOR = re.compile(
    r"(has no attribute|No module named|cannot import name) "
    r"'[\w.]*\bestimator\b")
_ADD_IMPORT = (
    'TensorFlow has no Estimator since 2.16; tfplugin provides it: add `import '
    'tfplugin` below `import tensorflow as tf` in the program.')

_NO_SERVER = re.compile(r'Could not start gRPC server|Address already in use')

# The formats of TensorFlow's logger and of absl's.
_LOGGED = re.compile(
    r'(?:[A-Z]+:(?P<name>\w+):|[IWEF]\d{4} [\d:.]+ +\d+ [^\]]*\] )'
    r'(?P<message>.*)')
_TRACEBACK = 'Traceback (most recent call last)'
_FRAME = re.compile(r'  File "')
# Of packages that pip has installed, and of tfplugin in a checkout.
_INSTALLED = re.compile(r'[/\\](?:site|dist)-packages[/\\]|' + re.escape(
    str(pathlib.Path(__file__).parents[2])))

# Warnings about code that works. The line after _INSTRUCTIONS has the remedy.
# The line after Python's own warning is the source, two spaces deeper.
_DEPRECATED = re.compile(r'is deprecated|DeprecationWarning|will be removed in')
_INSTRUCTIONS = 'Instructions for updating:'
_PYTHON_WARNING = re.compile(r':\d+: \w*Warning: ')


class Deprecations:
  """Filter for lines about deprecation; some of them have a second line."""

  def __init__(self):
    # The beginning of a line that belongs to the last one.
    self._second: str | None = None

  def has(self, line: str) -> bool:
    """Returns whether the next line is about deprecation."""
    is_second = self._second is not None and line.startswith(self._second)
    found = (is_second or _INSTRUCTIONS in line or
             _DEPRECATED.search(line) is not None)
    self._second = None
    if line.strip() == _INSTRUCTIONS:
      self._second = ''
    elif found and _PYTHON_WARNING.search(line):
      self._second = '  '
    return found


class Repeats:
  """Filter for the second copy of a message.

  TensorFlow's logger writes a message and passes it to absl's logger, which
  writes it in another format.
  """

  def __init__(self):
    self._message: str | None = None
    self._format = ''
    # Further lines of the message, and the ones still expected in its copy.
    self._rest: list[str] = []
    self._expected: list[str] = []

  def has(self, line: str) -> bool:
    """Returns whether the next line repeats the message before it."""
    found = _LOGGED.match(line)
    if not found:
      is_repeated = bool(self._expected) and self._expected[0] == line
      self._expected = self._expected[1:] if is_repeated else []
      if not is_repeated and self._message is not None and (
          len(self._rest) < _MOST_LINES):
        self._rest.append(line)
      return is_repeated
    is_repeated = (found['message'] == self._message and
                   bool(found['name']) != bool(self._format))
    self._expected = self._rest if is_repeated else []
    self._message = None if is_repeated else found['message']
    self._format, self._rest = found['name'] or '', []
    return is_repeated


class Tracebacks:
  """Collector of the lines of a traceback."""

  def __init__(self):
    self._lines: list[str] = []

  def take(self, line: str) -> list[str]:
    """Returns the lines to show now: one, a whole traceback, or none yet."""
    if line.startswith(_TRACEBACK):
      shown, self._lines = self._lines, [line]
      return shown
    if not self._lines:
      return [line]
    self._lines.append(line)
    is_end = line and not line[0].isspace()
    return self.rest() if is_end else []

  def rest(self) -> list[str]:
    """Returns the lines of a traceback that has no end yet."""
    shown, self._lines = self._lines, []
    return shown


def own_frames(lines: Sequence[str]) -> tuple[str, ...]:
  """Returns a traceback without the frames of installed packages.

  A chief and a worker that fail alike come through other functions of Estimator
  to the same line of the program.

  Example:
    >>> own_frames(['Traceback (most recent call last):', '  File "a.py", l. 1',
    ...             '    train()', '  File "/site-packages/b.py", l. 7',
    ...             '    run_chief()', 'NameError: no'])[1:]
    ('  File "a.py", l. 1', '    train()', 'NameError: no')
  """
  kept, is_own = [], True
  for line in lines:
    if _FRAME.match(line):
      is_own = not _INSTALLED.search(line)
    elif not line.startswith(' '):
      is_own = True
    if is_own:
      kept.append(line)
  return tuple(kept)


def without_noise(lines: Sequence[str]) -> list[str]:
  """Returns the lines that are not about deprecation.

  Example:
    >>> without_noise(['step 1', 'WARNING: f (from m) is deprecated and',
    ...                'Instructions for updating:', 'Use g.', 'no space left'])
    ['step 1', 'no space left']
  """
  deprecations = Deprecations()
  return [line for line in lines if not deprecations.has(line)]


def last_line(text: str) -> str:
  """Returns the last non-empty line, such as an exception's message."""
  return next((line for line in reversed(text.splitlines()) if line.strip()),
              '')


def tail(text: str, task: str, address: str) -> str:
  """Returns the last lines of a task's output, and a remedy if one is known."""
  lines = without_noise(text.splitlines())
  starts = [i for i, line in enumerate(lines) if _TRACEBACK in line]
  if starts:  # The program's frames would not fit behind all others.
    lines[starts[-1]:] = own_frames(lines[starts[-1]:])
  shown = '\n'.join(lines[-_TAIL_LINES:]) or '(The log is empty.)'
  if _NO_ESTIMATOR.search(shown):
    shown += f'\n{_ADD_IMPORT}'
  if address and _NO_SERVER.search(shown):
    shown += (f'\nThe port of {task}, {address}, is not free: another process '
              'listens there. End that process, or give the task another port.')
  return shown
