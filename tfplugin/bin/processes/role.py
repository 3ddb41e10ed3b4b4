# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One process of a cluster: how it starts, ends, and starts again."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Optional

from tfplugin.bin.processes import log_tails
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config

_POLL_SECS = 0.05


@contextlib.contextmanager
def _running_on(cpus: Optional[Sequence[int]]) -> Iterator[None]:
  """Lets this thread, and what it starts, run on some CPUs for a while."""
  if cpus is None:
    yield
    return
  before = os.sched_getaffinity(0)
  os.sched_setaffinity(0, cpus)
  try:
    yield
  finally:
    os.sched_setaffinity(0, before)


class Role:
  """One process of the cluster.

  Attributes:
    task: Which task of the cluster it is.
    address: Where its server listens; empty without one.
    log_path: The file that takes its standard output and standard error.
    log_start: The byte at which what this process writes begins.
    status: Its exit status; None while it runs. Negative: ended by a signal.
    pid: The process that runs, or ran last.
    num_restarts: How often it was started again.
    num_in_a_row: How often since a process of it lived for a minute.
    restart_at: When it is to be, by `time.monotonic`; None: it is not.
    reasons: How each of its processes ended that did not do its work.
  """

  def __init__(self, task: cluster_config.Task, command: Sequence[str],
               environment: Mapping[str, str], log_path: pathlib.Path,
               address: str = '', cpus: Optional[Sequence[int]] = None):
    """Starts the process.

    Args:
      task: Which task of the cluster it is.
      command: The program and its arguments.
      environment: Its whole environment.
      log_path: The log file; an earlier run's lines in it are kept.
      address: Where its server listens; empty without one.
      cpus: Those that it runs on; None: on any.
    """
    self.task = task
    self.address = address
    self.log_path = log_path
    self.num_restarts = self.num_in_a_row = 0
    self.reasons: list[str] = []
    self._command = list(command)
    self._environment = dict(environment)
    self._cpus = cpus
    self._start()

  def _start(self) -> None:
    self.status: Optional[int] = None
    self.restart_at: Optional[float] = None
    with open(self.log_path, 'a') as log, _running_on(self._cpus):
      self.log_start = log.tell()
      self._process = subprocess.Popen(
          self._command,
          env=self._environment,
          stdin=subprocess.DEVNULL,
          stdout=log,
          stderr=subprocess.STDOUT,
          start_new_session=True)
    self.pid = self._process.pid
    self._started_at = time.monotonic()

  @property
  def is_running(self) -> bool:
    """Whether it runs, or is to be started again."""
    return self.status is None or self.restart_at is not None

  def restart(self) -> None:
    """Starts the process again."""
    self.num_restarts += 1
    self.num_in_a_row += 1
    self._start()

  def poll(self) -> Optional[int]:
    """Returns the exit status, or None while the process runs.

    When it has ended, the processes that it left in its group are ended too.
    """
    if self.status is not None:
      return self.status
    # WNOWAIT: until the process is reaped its id, which is the group's id too,
    # cannot become another's.
    ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is not None:
      self.signal(signal.SIGKILL)
      self.status = self._process.wait()
      if time.monotonic() - self._started_at >= restarts.WELL_SECS:
        self.num_in_a_row = 0
    return self.status

  def signal(self, number: int) -> None:
    """Sends signal `number` to the process and its group while it has one."""
    if self.status is None:
      with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(self.pid, number)

  def wait(self, timeout: float) -> bool:
    """Waits at most `timeout` seconds; returns whether it has ended."""
    deadline = time.monotonic() + timeout
    while self.poll() is None and time.monotonic() < deadline:
      time.sleep(_POLL_SECS)
    return self.status is not None

  def last_write(self) -> float:
    """Returns when its log was written to for the last time."""
    with contextlib.suppress(FileNotFoundError):
      return self.log_path.stat().st_mtime
    return 0.0

  def describe_end(self) -> str:
    """Returns a sentence that says how the process ended."""
    if self.status is not None and self.status < 0:
      return f'was ended by {signal.Signals(-self.status).name}'
    return f'ended with status {self.status}'

  def describe_absence(self) -> str:
    """Returns why there is no process, e.g. 'done', in a few words."""
    if self.restart_at is not None:
      secs = max(0.0, self.restart_at - time.monotonic())
      return f'starts again in {secs:.0f} s: {self.reasons[-1]}'
    return self.describe_end() if self.status else 'done'

  def written(self) -> str:
    """Returns what the process that runs, or ran last, has written."""
    with contextlib.suppress(FileNotFoundError):
      return self.log_path.read_bytes()[self.log_start:].decode(
          errors='replace')
    return ''

  def ended_as(self, other: Role) -> bool:
    """Returns whether both have ended with one status and one last line."""
    last = log_tails.last_line(self.written())
    return (self.status is not None and self.status == other.status and
            bool(last) and last == log_tails.last_line(other.written()))

  def describe_failure(self) -> str:
    """Returns how the process ended, the last lines of its log, a remedy."""
    tail = log_tails.tail(self.written(), self.task.name, self.address)
    return (f'{self.task.name} {self.describe_end()}. The last lines of '
            f'{self.log_path}:\n{tail}')
