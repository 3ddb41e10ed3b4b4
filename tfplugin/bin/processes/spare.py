# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Spare process of a launch: it has imported TensorFlow, and waits for a task.

The import takes most of the restart of a parameter server. The spare does it
beforehand. When a task restarts, the spare gets the task's environment and log,
and runs its program. This file, run as a script, is the spare.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from collections.abc import Sequence

# Python's options that a spare gets, too.
_OPTIONS = ('-u', '-B')
# The one variable in which the tasks of a launch differ.
_OF_TASK = 'TF_CONFIG'


class Spare:
  """The spare process of a launch; it runs a task if `is_used`."""

  def __init__(self, command: Sequence[str], environment: Mapping[str, str]):
    """Starts the process, for tasks of this interpreter and environment."""
    self.is_used = False
    self._interpreter, _ = _split(command)
    self._environment = _shared(environment)
    self._process = subprocess.Popen(
        [*self._interpreter, __file__], env=self._environment,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, text=True)
    self.pid = self._process.pid

  def become(self, command: Sequence[str], environment: Mapping[str, str],
             log_path: str | os.PathLike) -> subprocess.Popen | None:
    """Runs `command` in the process, and returns the process.

    Returns None if it has ended, or was started for other tasks.
    """
    interpreter, program = _split(command)
    if (self._process.poll() is not None or not program or
        interpreter != self._interpreter or
        _shared(environment) != self._environment):
      return None
    try:
      self._process.stdin.write(json.dumps(
          [program, environment[_OF_TASK], os.fspath(log_path)]))
      self._process.stdin.close()
    except BrokenPipeError:
      return None
    self.is_used = True
    return self._process

  def end(self) -> None:
    """Ends the process, unless it runs a task."""
    if not self.is_used:
      self._process.kill()
      self._process.communicate()


def can_run(command: Sequence[str]) -> bool:
  """Returns whether a spare can run a command: a script or module of Python."""
  return bool(_split(command)[1])


def _split(command: Sequence[str]) -> tuple[list[str], list[str]]:
  """Returns interpreter and program; no program if a spare cannot run it."""
  count = 1
  while count < len(command) and command[count] in _OPTIONS:
    count += 1
  program = list(command[count:])
  is_python = re.fullmatch(r'python[\d.]*', os.path.basename(command[0]))
  if not (is_python and program and (
      program[0] == '-m' or not program[0].startswith('-'))):
    program = []
  return list(command[:count]), program


def _shared(environment: Mapping[str, str]) -> dict[str, str]:
  return {name: value for name, value in environment.items()
          if name != _OF_TASK}


def _main() -> None:
  sys.path.pop(0)  # The directory of this file.
  import tensorflow  # noqa: F401 (this is what the spare is for)
  request = sys.stdin.read()
  if not request:  # The launcher has ended.
    return
  program, os.environ[_OF_TASK], log_path = json.loads(request)
  null = os.open(os.devnull, os.O_RDONLY)
  log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
  for stream, copy in ((null, 0), (log, 1), (log, 2)):
    os.dup2(stream, copy)
  if program[0] == '-m':
    sys.path.insert(0, os.getcwd())
    sys.argv = program[1:]
    runpy.run_module(program[1], run_name='__main__', alter_sys=True)
  else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
    sys.argv = program
    runpy.run_path(program[0], run_name='__main__')


if __name__ == '__main__':
  _main()
