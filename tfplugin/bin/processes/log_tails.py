# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the last lines of a log say to the one who has to mend something."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAIL_LINES = 20

# What TensorFlow, and Python, say of Estimator from TensorFlow 2.16 on.
_NO_ESTIMATOR = re.compile(
    r"(has no attribute|No module named|cannot import name) "
    r"'[\w.]*\bestimator\b")
_ADD_IMPORT = (
    'TensorFlow has no Estimator since 2.16; tfplugin gives it back: add '
    '`import tfplugin` below `import tensorflow as tf` in the program.')

_NO_SERVER = re.compile(r'Could not start gRPC server|Address already in use')

# Of things that work; the line after the second tells what to do instead.
_DEPRECATED = re.compile(r'is deprecated|DeprecationWarning|will be removed in')
_INSTRUCTIONS = 'Instructions for updating:'


def without_noise(lines: Sequence[str]) -> list[str]:
  """Returns the lines that are not about deprecation.

  Example:
    >>> without_noise(['step 1', 'WARNING: f (from m) is deprecated and',
    ...                'Instructions for updating:', 'Use g.', 'no space left'])
    ['step 1', 'no space left']
  """
  kept, is_instruction = [], False
  for line in lines:
    if not (is_instruction or _DEPRECATED.search(line) or
            _INSTRUCTIONS in line):
      kept.append(line)
    is_instruction = line.strip() == _INSTRUCTIONS
  return kept


def tail(text: str, task: str, address: str) -> str:
  """Returns the last lines of what a process has written, and a remedy.

  Args:
    text: What it has written.
    task: Its task, e.g. `ps:0`.
    address: Of its server; empty without one.
  """
  lines = without_noise(text.splitlines())
  shown = '\n'.join(lines[-_TAIL_LINES:]) or '(It has written nothing.)'
  if _NO_ESTIMATOR.search(shown):
    shown += f'\n{_ADD_IMPORT}'
  if address and _NO_SERVER.search(shown):
    shown += (f'\nThe port of {task}, {address}, is not free: another process '
              'listens there. End that process, or give the task another port.')
  return shown
