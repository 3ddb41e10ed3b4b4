# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes of a benchmark that are asked and answer, a line of JSON each.

The program of a role reads `requests` and answers with `say`; it ends when its
input does, so that none outlives the benchmark, however that one ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any


class Role:
  """A process that answers."""

  def __init__(self, process: subprocess.Popen, name: str):
    """Reads what the process says.

    Args:
      process: One of `running`.
      name: For messages.
    """
    self._process, self._name = process, name
    self._answers = queue.Queue()
    threading.Thread(target=self._read, daemon=True).start()

  def _read(self):
    with contextlib.suppress(ValueError):  # Closed at the end.
      for line in self._process.stdout:
        self._answers.put(line)
    self._answers.put('')

  def ask(self, *request: Any) -> None:
    """Sends a request."""
    self._process.stdin.write(json.dumps(request) + '\n')
    self._process.stdin.flush()

  def processors_secs(self) -> tuple[float, float]:
    """The time that its threads have had so far: in all, in the kernel."""
    stat = pathlib.Path(f'/proc/{self._process.pid}/stat').read_text()
    user, system = stat.rpartition(')')[2].split()[11:13]
    ticks = os.sysconf('SC_CLK_TCK')
    return (int(user) + int(system)) / ticks, int(system) / ticks

  def answer(self, limit_secs: float) -> Any:
    """Returns the next answer.

    Args:
      limit_secs: How long it may take.

    Raises:
      TimeoutError: It takes longer.
      RuntimeError: The process has ended.
    """
    try:
      line = self._answers.get(timeout=limit_secs)
    except queue.Empty:
      raise TimeoutError(
          f'{self._name} did not answer in {limit_secs:g} s.') from None
    if not line:
      raise RuntimeError(f'{self._name} ended with status '
                         f'{self._process.wait()}.')
    return json.loads(line)


@contextlib.contextmanager
def running(commands: Sequence[Sequence[str]], directory: pathlib.Path,
            log: pathlib.Path | None = None,
            ) -> Iterator[list[subprocess.Popen]]:
  """Runs commands while a `with` lasts.

  Args:
    commands: Programs with their arguments.
    directory: Where they run.
    log: Where their stderr goes; None: to that of this process.

  Yields:
    The processes, with pipes for input and output.
  """
  processes = []
  # A proxy is for the machine's own network, which no role is to use.
  # TF2_BEHAVIOR is what this process's TensorFlow has set: 1.15 would behave
  # like 2.
  environment = {name: value for name, value in os.environ.items()
                 if not name.lower().endswith('_proxy') and
                 name != 'TF2_BEHAVIOR'}
  try:
    with contextlib.ExitStack() as stack:
      stderr = stack.enter_context(log.open('a')) if log else None
      for command in commands:
        processes.append(subprocess.Popen(
            command, cwd=directory, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=stderr, text=True))
    yield processes
  finally:
    for process in processes:
      process.kill()
    for process in processes:
      process.wait()
      with contextlib.suppress(BrokenPipeError):  # It ended before it read.
        process.stdin.close()
      process.stdout.close()


def requests() -> queue.Queue:
  """Returns the requests; the process ends with them, whatever it does."""
  lines = queue.Queue()

  def read():
    for line in sys.stdin:
      lines.put(json.loads(line))
    os._exit(0)

  threading.Thread(target=read, daemon=True).start()
  return lines


def say(value: Any) -> None:
  """Answers."""
  print(json.dumps(value), flush=True)
