# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Display of the tasks' output, each line behind the name of its task."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from tfplugin.bin.processes import log_tails
from tfplugin.bin.processes import role_process

ALL = 'all'
DEPRECATIONS = 'deprecations'
HIDDEN = (DEPRECATIONS, 'nothing')
# As much of a log is read at once: a task may write faster than it is shown.
_PIECE_BYTES = 1 << 20
# So many are remembered: a task may log one in each step.
_MOST_TRACEBACKS = 1000
# Codes of a terminal's colours: cyan, green, yellow, magenta, blue, and their
# light variants.
_COLORS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


def check_shown(shown: Sequence[str], tasks: Iterable[str]) -> None:
  """Raises `ValueError` unless each of `shown` is a task, a job or 'all'."""
  known = {ALL, *tasks, *(task.partition(':')[0] for task in tasks)}
  for name in shown:
    if name not in known:
      raise ValueError(f'`show` must name tasks or jobs of the run '
                       f'({", ".join(sorted(known))}). Received: {name!r}')


class TaskOutput:
  """Reader of the roles' logs that shows new lines."""

  def __init__(self, say: Callable[[str], None], shown: Sequence[str] = (ALL,),
               pattern: str = '', is_colored: bool = False,
               hide: str = 'nothing'):
    """Follows no role yet; raises `ValueError` for an invalid `pattern`.

    `shown` has tasks, jobs or 'all'. Only lines in which the regular expression
    `pattern` is found are shown. `hide`, one of `HIDDEN`, names the lines that
    are counted instead of shown.
    """
    self._say = say
    self._shown = frozenset(shown)
    self._is_colored = is_colored
    self._hides = hide == DEPRECATIONS
    self._followed: dict[role_process.Role, _Followed] = {}
    # By the program's frames of a traceback: the first task that wrote it.
    self._tracebacks: dict[tuple[str, ...], str] = {}
    self.num_hidden = 0
    try:
      self._pattern = re.compile(pattern)
    except re.error as e:
      raise ValueError(f'`grep` must be a regular expression ({e}). '
                       f'Received: {pattern!r}') from e

  def follow(self, role: role_process.Role) -> None:
    """Follows the log of a role that has just started, if it is to be shown."""
    if self._shown & {ALL, role.task.type, role.task.name}:
      self._followed[role] = _Followed(role.log_start)

  def show(self, is_all: bool = False) -> None:
    """Shows the lines that were written since the last call.

    A traceback that another task had becomes one line. A message that
    TensorFlow logs in two formats appears once. `is_all` includes an unfinished
    line.
    """
    for number, (role, followed) in enumerate(self._followed.items()):
      prefix = self._prefix(role, number)
      for line in followed.read(role.log_path, is_all):
        if self._hides and followed.deprecations.has(line):
          self.num_hidden += 1
        elif not followed.repeats.has(line):
          self._show_lines(role, prefix, followed.tracebacks.take(line))
      if is_all:
        self._show_lines(role, prefix, followed.tracebacks.rest())
    if is_all and self.num_hidden:
      self._say(f'{self.num_hidden} lines about deprecation were not shown; '
                '--hide=nothing shows them.')

  def _show_lines(self, role: role_process.Role, prefix: str,
                  lines: Sequence[str]) -> None:
    """Shows a line or a whole traceback."""
    first = role.task.name
    if len(lines) > 1:
      if len(self._tracebacks) == _MOST_TRACEBACKS:
        self._tracebacks.clear()
      first = self._tracebacks.setdefault(log_tails.own_frames(lines), first)
    if first != role.task.name:
      lines = [f'{lines[-1]} (the traceback of {first})']
    for line in lines:
      if self._pattern.search(line):
        self._say(prefix + line)

  def _prefix(self, role: role_process.Role, number: int) -> str:
    prefix = f'{role.task.name}| '
    if not self._is_colored:
      return prefix
    return f'\033[{_COLORS[number % len(_COLORS)]}m{prefix}\033[0m'


class _Followed:
  """Position in the log of a role, and the filters for its lines."""

  def __init__(self, position: int):
    self._position = position
    self.deprecations = log_tails.Deprecations()
    self.repeats = log_tails.Repeats()
    self.tracebacks = log_tails.Tracebacks()

  def read(self, path: pathlib.Path, is_all: bool) -> Iterator[str]:
    """Yields the new lines of one piece; with `is_all` of all, to the end.

    Without it, the last line of the log waits until it is whole. A line that is
    longer than a piece has several.
    """
    with contextlib.suppress(OSError):  # The log may have been deleted.
      size = os.path.getsize(path)
      if size < self._position:  # Truncated, to make room.
        self._position = 0
      while self._position < size:  # Its task may still write.
        with open(path, 'rb') as log:
          log.seek(self._position)
          piece = log.read(_PIECE_BYTES)
        is_last = len(piece) < _PIECE_BYTES
        end = piece.rfind(b'\n') + 1
        if is_all and is_last or not is_last and not end:
          end = len(piece)
        self._position += end
        yield from piece[:end].decode(errors='replace').splitlines()
        if not (is_all and end):
          return


def should_color(choice: str) -> bool:
  """Returns whether `choice`, 'always', 'never' or 'auto', gives colours."""
  return choice == 'always' or (
      choice == 'auto' and sys.stdout.isatty() and
      os.environ.get('TERM') != 'dumb' and not os.environ.get('NO_COLOR'))
