# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts, supervises and ends the processes of a cluster on this machine.

Each role runs in a session, thus a process group, of its own with TF_CONFIG in
its environment and its output in a log file. The launcher ends the groups when
it ends; if it cannot, because it was killed, `guard.py` does.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Optional
from typing import Union

from tfplugin.bin import guard
from tfplugin.bin import interrupts
from tfplugin.distribute import cluster_config

_GUARD = pathlib.Path(__file__).with_name('guard.py')
_POLL_SECS = 0.1
# Between SIGTERM and SIGKILL.
_GRACE_SECS = 5.0
_TAIL_LINES = 20

# What TensorFlow, and Python, say of Estimator from TensorFlow 2.16 on.
_NO_ESTIMATOR = re.compile(
    r"(has no attribute|No module named|cannot import name) "
    r"'[\w.]*\bestimator\b")
_REMEDY = (
    'TensorFlow has no Estimator since 2.16; tfplugin gives it back: add '
    '`import tfplugin` below `import tensorflow as tf` in the program.')


class RoleError(RuntimeError):
  """A role has ended that the run cannot do without."""


class Role:
  """One process of the cluster.

  Attributes:
    task: Which task of the cluster it is.
    log_path: The file that takes its standard output and standard error.
    status: Its exit status; None while it runs. Negative: ended by a signal.
  """

  def __init__(self, task: cluster_config.Task, command: Sequence[str],
               environment: Mapping[str, str], log_path: pathlib.Path):
    """Starts the process.

    Args:
      task: Which task of the cluster it is.
      command: The program and its arguments.
      environment: Its whole environment.
      log_path: The log file; an earlier run's lines in it are kept.
    """
    self.task = task
    self.log_path = log_path
    self.status: Optional[int] = None
    with open(log_path, 'a') as log:
      self._log_start = log.tell()
      self._process = subprocess.Popen(
          list(command),
          env=dict(environment),
          stdin=subprocess.DEVNULL,
          stdout=log,
          stderr=subprocess.STDOUT,
          start_new_session=True)
    self.pid = self._process.pid

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
      time.sleep(_POLL_SECS / 2)
    return self.status is not None

  def describe_end(self) -> str:
    """Returns a sentence that says how the process ended."""
    if self.status is not None and self.status < 0:
      return f'was ended by {signal.Signals(-self.status).name}'
    return f'ended with status {self.status}'

  def describe_failure(self) -> str:
    """Returns how the process ended, the last lines of its log, a remedy."""
    written = b''
    with contextlib.suppress(FileNotFoundError):
      written = self.log_path.read_bytes()[self._log_start:]
    lines = written.decode(errors='replace').splitlines()
    tail = '\n'.join(lines[-_TAIL_LINES:]) or '(It has written nothing.)'
    if _NO_ESTIMATOR.search(tail):
      tail += f'\n{_REMEDY}'
    return (f'{self.task.name} {self.describe_end()}. The last lines of '
            f'{self.log_path}:\n{tail}')


class LocalCluster:
  """The processes of one cluster; a context manager that leaves none behind.

  Inside the context SIGINT (Ctrl-C), SIGTERM and SIGHUP are noted, and raised
  as `KeyboardInterrupt` by the next `check` or `wait`: never between the start
  of a process and its entry in the books.

  Attributes:
    roles: The roles in the order of their start.
    lost: Workers that ended with an error while the run went on.

  Example:
    >>> import sys
    >>> import tempfile
    >>> from tfplugin.bin import local_cluster
    >>> from tfplugin.distribute import cluster_config
    >>> command = [sys.executable, '-c', 'print("trained")']
    >>> with local_cluster.LocalCluster(tempfile.mkdtemp()) as cluster:
    ...   role = cluster.start(cluster_config.Task('chief', 0), command, {})
    ...   cluster.wait(timeout=30)
    >>> role.status, role.log_path.read_text().split()
    (0, ['trained'])
  """

  def __init__(self, log_dir: Union[str, os.PathLike], *,
               on_lost: Optional[Callable[[Role], None]] = None):
    """Prepares an empty cluster.

    Args:
      log_dir: The directory of the log files; made if it does not exist.
      on_lost: Called once with each worker that ended early, while the run goes
        on without it.
    """
    self._log_dir = pathlib.Path(log_dir)
    self._on_lost = on_lost or (lambda role: None)
    self._mark = uuid.uuid4().hex
    self._guard: Optional[subprocess.Popen] = None
    self._interrupts = interrupts.Interrupts()
    self.roles: list[Role] = []
    self.lost: list[Role] = []

  def __enter__(self) -> LocalCluster:
    self._log_dir.mkdir(parents=True, exist_ok=True)
    self._interrupts.__enter__()
    self._start_guard()
    return self

  def __exit__(self, *unused_error) -> None:
    try:
      self.end()
    finally:
      self._interrupts.__exit__()
      self._guard.stdin.close()
      self._guard.wait()

  def start(self, task: cluster_config.Task, command: Sequence[str],
            cluster: Mapping[str, Sequence[str]],
            environment: Optional[Mapping[str, str]] = None) -> Role:
    """Starts one role.

    Args:
      task: The task that the process is to be.
      command: The program and its arguments.
      cluster: The cluster that TF_CONFIG describes; empty for a process that is
        to train alone, without TF_CONFIG.
      environment: Further variables.

    Returns:
      The role.
    """
    env = {**os.environ, **(environment or {})}
    env.pop('TF_CONFIG', None)
    if cluster:
      env['TF_CONFIG'] = cluster_config.encode(cluster, task)
    marks = [os.environ.get(guard.MARK_VARIABLE), self._mark]
    env[guard.MARK_VARIABLE] = ','.join(filter(None, marks))
    role = Role(task, command, env,
                self._log_dir / f'{task.type}-{task.index}.log')
    self.roles.append(role)
    self._tell_guard('watch', role)
    return role

  def wait(self, *,
           spare: Sequence[str] = ('ps',),
           while_waiting: Callable[[], None] = lambda: None,
           timeout: Optional[float] = None) -> None:
    """Waits until the roles have ended, but for those that serve others.

    A worker that ends with an error is given up and the run goes on: training
    is asynchronous, and the others take its share. Any other role that does
    ends the wait with an error.

    Args:
      spare: The types of the tasks that are not waited for.
      while_waiting: Called ten times a second.
      timeout: The time limit in seconds; None waits as long as it takes.

    Raises:
      RoleError: a role ended that cannot be spared; the message has the last
        lines of its log.
      TimeoutError: time is up; the message names the roles still running.
      KeyboardInterrupt: a signal asked for the end.
    """
    start = time.monotonic()
    while True:
      self.check()
      while_waiting()
      running = [r.task.name for r in self.roles
                 if r.task.type not in spare and r.status is None]
      if not running:
        return
      if timeout is not None and time.monotonic() - start > timeout:
        raise TimeoutError(
            f'The cluster must be done in {timeout:g} s. Still running: '
            f'{", ".join(running)}. Their logs are in {self._log_dir}.')
      time.sleep(_POLL_SECS)

  def wait_for_ps(self, timeout: float) -> bool:
    """Waits for the parameter servers to end by themselves.

    Args:
      timeout: The time limit in seconds.

    Returns:
      Whether all have ended.
    """
    deadline = time.monotonic() + timeout
    return all([role.wait(deadline - time.monotonic()) for role in self.roles
                if role.task.type == 'ps'])

  def check(self) -> None:
    """Looks after each process once; raises as `wait` does."""
    self._interrupts.raise_if_any()
    if self._guard.poll() is not None:
      self._start_guard()
    for role in self.roles:
      if role.status is None and role.poll() is not None:
        self._handle_end(role)

  def end(self, grace_secs: float = _GRACE_SECS) -> None:
    """Ends every process that still runs, and its children.

    Args:
      grace_secs: How long a process has between SIGTERM and SIGKILL. A signal
        to this process while it waits cuts the time short.
    """
    seen = self._interrupts.count
    for role in self.roles:
      role.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace_secs
    while (any([role.poll() is None for role in self.roles]) and
           time.monotonic() < deadline and self._interrupts.count == seen):
      time.sleep(_POLL_SECS / 2)
    for role in self.roles:
      role.signal(signal.SIGKILL)
      role.wait(grace_secs)
    guard.kill_marked(self._mark)

  def _handle_end(self, role: Role) -> None:
    self._tell_guard('forget', role)
    if role.status == 0:
      return
    if role.task.type == 'worker':
      self.lost.append(role)
      self._on_lost(role)
      return
    raise RoleError(role.describe_failure())

  def _start_guard(self) -> None:
    # -I: neither this directory nor PYTHONPATH is to shadow a standard module.
    self._guard = subprocess.Popen(
        [sys.executable, '-I', '-S', str(_GUARD), self._mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True)
    for role in self.roles:
      if role.status is None:
        self._tell_guard('watch', role)

  def _tell_guard(self, command: str, role: Role) -> None:
    with contextlib.suppress(BrokenPipeError):
      self._guard.stdin.write(f'{command} {role.pid}\n')
      self._guard.stdin.flush()
