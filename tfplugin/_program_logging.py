# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps TensorFlow's first lines out of the output of tfplugin's programs.

Importing TensorFlow prints what the build can do on this CPU. That stands above
the progress line of a program, and nothing can take it back: the level has to
be set before the import, thus in front of everything else in the package. As a
library tfplugin leaves the level alone.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence

_VARIABLE = 'TF_CPP_MIN_LOG_LEVEL'
_WARNINGS_AND_ERRORS = '1'


def is_own_program(command: Sequence[str]) -> bool:
  """Whether a command line starts a program of tfplugin.

  Args:
    command: The interpreter, its options, the program and its arguments.

  Example:
    >>> is_own_program(['python', '/usr/bin/tfplugin-train', '--steps=9'])
    True
    >>> is_own_program(['python', '-m', 'tfplugin.bin.train'])
    True
    >>> is_own_program(['python', 'program.py', 'tfplugin-train'])
    False
  """
  for argument, following in zip(command[1:], [*command[2:], '']):
    if argument == '-m':
      return following.startswith('tfplugin.bin.')
    if not argument.startswith('-'):
      return pathlib.PurePath(argument).name.startswith('tfplugin-')
  return False


def quieten() -> None:
  """Sets the level in a program of tfplugin, unless the user has."""
  # Python 3.9 does not know it: there the lines stay.
  if is_own_program(getattr(sys, 'orig_argv', ())):
    os.environ.setdefault(_VARIABLE, _WARNINGS_AND_ERRORS)


quieten()
