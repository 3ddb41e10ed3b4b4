# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Process of a cluster: its start, end and restart."""

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

from tfplugin.bin.processes import log_tails
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import spare as spare_lib
from tfplugin.distribute import cluster_config

_POLL_SECS = 0.05
# Between attempts to open the log of a process that restarts.
RETRY_SECS = 1.0
# Enough for the last lines and a traceback; a log may have gigabytes.
_TAIL_BYTES = 1 << 20


@contextlib.contextmanager
def _running_on(cpus: Sequence[int] | None) -> Iterator[None]:
  """Restricts this thread, and processes that it starts, to some CPUs."""
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
    address: The address of its server; empty without one.
    log_start: The byte of the log at which the output of this process begins.
    status: The exit status; None while it runs, negative after a signal.
    num_in_a_row: Restarts since a process of the role lived for a minute.
    restart_at: The time of the next restart by `time.monotonic`; None without.
    reasons: A description of each failure so far.
  """

  def __init__(self, task: cluster_config.Task, command: Sequence[str],
               environment: Mapping[str, str], log_path: pathlib.Path,
               address: str = '', cpus: Sequence[int] | None = None):
    """Starts the process in exactly this environment."""
    self.task = task
    self.address = address
    self.log_path = log_path
    self.num_restarts = self.num_in_a_row = 0
    self.reasons: list[str] = []
    self.command = list(command)
    self.environment = dict(environment)
    self._cpus = cpus
    self._start()

  def _start(self, spare: spare_lib.Spare | None = None) -> None:
    self.status: int | None = None
    self.restart_at: float | None = None
    with open(self.log_path, 'a') as log, _running_on(self._cpus):
      self.log_start = log.tell()
      self._process = spare and self._cpus is None and spare.become(
          self.command, self.environment, self.log_path) or subprocess.Popen(
          self.command,
          env=self.environment,
          stdin=subprocess.DEVNULL,
          stdout=log,
          stderr=subprocess.STDOUT,
          start_new_session=True)
    self.pid = self._process.pid
    self._started_at = time.monotonic()

  @property
  def is_running(self) -> bool:
    """True if the process runs or waits for its restart."""
    return self.status is None or self.restart_at is not None

  @property
  def age(self) -> float:
    """The seconds since the start of the current or last process."""
    return time.monotonic() - self._started_at

  def restart(self, spare: spare_lib.Spare | None = None) -> bool:
    """Starts the process again, by a spare if it fits; returns whether.

    If the log cannot be opened, as on a full or read-only disk, the restart is
    due again a moment later.
    """
    try:
      open(self.log_path, 'a').close()
    except OSError as e:
      reason = f'its log {self.log_path} cannot be written: {e.strerror}'
      if self.reasons[-1:] != [reason]:
        self.reasons.append(reason)
      self.restart_at = time.monotonic() + RETRY_SECS
      return False
    self.num_restarts += 1
    self.num_in_a_row += 1
    self._start(spare)
    return True

  def poll(self) -> int | None:
    """Returns the exit status, or None while the process runs.

    After its end the remaining processes of its group are killed.
    """
    if self.status is not None:
      return self.status
    # WNOWAIT: before the process is reaped no other one can get its id, which
    # is also the id of the group.
    ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is not None:
      self.signal(signal.SIGKILL)
      self.status = self._process.wait()
      if self.age >= restarts.WELL_SECS:
        self.num_in_a_row = 0
    return self.status

  def signal(self, number: int) -> None:
    """Sends a signal to the process and its group while they exist."""
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
    """Returns the time of the last write to the log; 0.0 without a log."""
    with contextlib.suppress(FileNotFoundError):
      return self.log_path.stat().st_mtime
    return 0.0

  def describe_end(self) -> str:
    """Returns the end in words, e.g. 'ended with status 1'."""
    if self.status is not None and self.status < 0:
      # Signals for real time have no names.
      names = {number.value: number.name for number in signal.Signals}
      name = names.get(-self.status, f'signal {-self.status}')
      return f'was ended by {name}'
    return f'ended with status {self.status}'

  def describe_absence(self) -> str:
    """Returns in a few words why there is no process, e.g. 'done'."""
    if self.restart_at is not None:
      secs = max(0.0, self.restart_at - time.monotonic())
      return f'restarts in {secs:.0f} s: {self.reasons[-1]}'
    return self.describe_end() if self.status else 'done'

  def written(self) -> str:
    """Returns the end of the output of the current or last process."""
    with contextlib.suppress(OSError), open(self.log_path, 'rb') as log:
      size = log.seek(0, os.SEEK_END)
      log.seek(max(self.log_start, size - _TAIL_BYTES))
      return log.read().decode(errors='replace')
    return ''

  def ended_as(self, other: Role) -> bool:
    """Returns whether both have ended with the same status and last line."""
    last = log_tails.last_line(self.written())
    return (self.status is not None and self.status == other.status and
            bool(last) and last == log_tails.last_line(other.written()))

  def describe_failure(self) -> str:
    """Returns the end in words, the last lines of the log and a remedy."""
    tail = log_tails.tail(self.written(), self.task.name, self.address)
    return (f'{self.task.name} {self.describe_end()}. The last lines of '
            f'{self.log_path}:\n{tail}')
