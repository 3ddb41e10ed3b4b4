# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Filter that removes TensorFlow's first log lines from tfplugin's programs.

Importing TensorFlow logs the features of the CPU above the progress line of a
program. The log level must be set before that import, so this module is
imported first in the package. Where tfplugin is used as a library, the level is
left alone.
"""

from __future__ import annotations

import atexit
import os
import pathlib
import re
import sys
import threading
from collections.abc import Sequence

_VARIABLE = 'TF_CPP_MIN_LOG_LEVEL'
_WARNINGS_AND_ERRORS = '1'
# A program's name is in its command line; its module is not imported yet.
_ROLE = 'tfplugin.bin.role'
_STDERR = 2
_DRAIN_SECS = 1.0
# Information from C++, and the warning that there is no CUDA driver.
_OF_THE_MACHINE = re.compile(
    rb'WARNING: All log messages before absl::InitializeLog|'
    rb'I\d{4} [\d:.]+ +\d+ \S+\.cc:\d+\]|'
    rb'[WE]\d{4} [\d:.]+ +\d+ (cuda|cudart)\w*\.cc:\d+\]|'
    rb'To enable the following instructions')


def is_own_program(command: Sequence[str]) -> bool:
  """Returns whether a command line starts a program of tfplugin.

  `command` begins with the interpreter and its options.

  Example:
    >>> is_own_program(['python', '/usr/bin/tfplugin-train', '--steps=9'])
    True
    >>> is_own_program(['python', '-m', 'tfplugin.bin.train'])
    True
    >>> is_own_program(['python', '-m', 'tfplugin'])
    True
    >>> is_own_program(['python', 'program.py', 'tfplugin-train'])
    False
  """
  for argument, following in zip(command[1:], [*command[2:], '']):
    if argument == '-m':
      return following == 'tfplugin' or following.startswith('tfplugin.bin.')
    if not argument.startswith('-'):
      return pathlib.PurePath(argument).name.startswith('tfplugin-')
  return False


def own_command() -> Sequence[str]:
  """Returns the command line of this process; empty if it is not known."""
  if hasattr(sys, 'orig_argv'):
    return sys.orig_argv
  try:  # Python 3.9; Linux has the same.
    text = pathlib.Path('/proc/self/cmdline').read_bytes()
  except OSError:
    return ()
  return os.fsdecode(text).split('\0')[:-1]


def quieten() -> None:
  """Removes the lines from a program of tfplugin, unless a level is set."""
  command = own_command()
  if is_own_program(command) and _VARIABLE not in os.environ:
    os.environ[_VARIABLE] = _WARNINGS_AND_ERRORS
    if _ROLE not in command:  # A role has a log file.
      filter_stderr()


def filter_stderr() -> None:
  """Drops newer TensorFlow's messages about the machine, at any level.

  C++ writes them to the file descriptor, below Python. The descriptor becomes a
  pipe, and a thread copies all other lines. Python's own lines bypass the pipe.
  """
  real = os.dup(_STDERR)
  read, write = os.pipe()
  os.dup2(write, _STDERR, inheritable=True)
  os.close(write)
  sys.stderr = open(os.dup(real), 'w', buffering=1, errors='backslashreplace')
  thread = threading.Thread(target=_pass_on, args=(read, real), daemon=True)
  thread.start()

  def restore():
    os.dup2(real, _STDERR, inheritable=True)
    thread.join(_DRAIN_SECS)

  atexit.register(restore)


def _pass_on(read: int, real: int) -> None:
  """Copies lines from a pipe, except those about the machine."""
  with open(read, 'rb') as lines:
    for line in lines:
      if not _OF_THE_MACHINE.match(line):
        os.write(real, line)


quieten()
