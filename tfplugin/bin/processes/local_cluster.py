# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Start, supervision and end of a cluster's processes on this machine.

Each role runs in its own session, and thus process group, with TF_CONFIG in its
environment and its output in a log file. The launcher ends the groups when it
ends. If it is killed, `guard.py` ends them.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.bin.processes import guard
from tfplugin.bin.processes import ports
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import role_process
from tfplugin.bin.processes import spare as spare_lib
from tfplugin.distribute import cluster_config
from tfplugin.events import clock

_GUARD = pathlib.Path(__file__).with_name('guard.py')
_POLL_SECS = 0.1
# Enough for the kernel to end a process.
_KILL_LIMIT_SECS = 30.0
# A spare is started when no task has started for so long: it takes CPU time.
_SPARE_AFTER_SECS = 10.0
# Jobs whose failure does not end the run.
_DISPENSABLE = ('worker', 'evaluator')
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RoleError(RuntimeError):
  """Error for the end of a role that the run needs."""

  exit_status = 1


class Interrupts:
  """A context that counts SIGINT, SIGTERM and SIGHUP instead of acting on them.

  Signals that this process ignores stay ignored: `nohup` does so. Outside the
  main thread, where Python handles no signals, `count` stays 0.
  """

  def __init__(self):
    self.count = 0
    self._previous = {}

  def __enter__(self) -> Interrupts:
    if threading.current_thread() is threading.main_thread():
      for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
          self._previous[number] = signal.signal(number, self._note)
    return self

  def __exit__(self, *unused_error) -> None:
    for number, handler in self._previous.items():
      # None: Python did not install the handler and cannot restore it.
      signal.signal(number, handler or signal.SIG_DFL)

  def raise_if_any(self) -> None:
    """Raises `KeyboardInterrupt` if a signal has arrived."""
    if self.count:
      raise KeyboardInterrupt

  def _note(self, *unused_signal: object) -> None:
    self.count += 1


class LocalCluster:
  """The processes of one cluster; a context manager that leaves none behind.

  Inside the context SIGINT (Ctrl-C), SIGTERM and SIGHUP become a
  `KeyboardInterrupt` of the next `check`. No signal can fall between
  the start of a process and its registration.

  Attributes:
    lost: Workers, and the evaluator, that failed for good while the run went
      on.
    failed: The role whose end ended the run; None if there was none.
  """

  def __init__(self, log_dir: str | os.PathLike, *,
               on_lost: Callable[[role_process.Role], None] | None = None,
               policy: restarts.RestartPolicy | None = None,
               on_restart: (Callable[[role_process.Role, float], None] |
                            None) = None,
               grace_secs: float = 5.0,
               tf_config: Mapping[str, Any] | None = None):
    """Prepares an empty cluster; makes `log_dir` if it does not exist.

    `on_lost` is called once with each worker, or evaluator, that the run goes
    on without. `on_restart` is called with each role to restart and the delay
    in seconds. Without a `policy` no role restarts. `grace_secs` is the time
    from SIGTERM to SIGKILL. `tf_config` has further keys of TF_CONFIG.
    """
    self._log_dir = pathlib.Path(log_dir)
    self._on_lost = on_lost or (lambda role: None)
    self._policy = policy or restarts.RestartPolicy()
    self._on_restart = on_restart or (lambda role, delay: None)
    self._grace_secs = grace_secs
    self._tf_config = tf_config or {}
    self._first_failure: tuple[role_process.Role, str] | None = None
    self._horovod_port = str(ports.pick_free(1)[0])
    self._mark = uuid.uuid4().hex
    self._guard: subprocess.Popen | None = None
    self._spare: spare_lib.Spare | None = None
    self._interrupts = Interrupts()
    self.roles: list[role_process.Role] = []
    self.lost: list[role_process.Role] = []
    self.failed: role_process.Role | None = None

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
            environment: Mapping[str, str] | None = None,
            cpus: Sequence[int] | None = None) -> role_process.Role:
    """Starts one role, with `environment` in addition to this process's.

    `cluster` becomes TF_CONFIG; an empty one starts a process that trains
    alone, without TF_CONFIG. `cpus` None allows any CPU.
    """
    env = {**self._horovod_variables(cluster), **os.environ,
           **clock.variables(), **(environment or {})}
    env.pop('TF_CONFIG', None)
    if cluster:
      env['TF_CONFIG'] = cluster_config.encode(cluster, task,
                                               self._tf_config)
    marks = [os.environ.get(guard.MARK_VARIABLE), self._mark]
    env[guard.MARK_VARIABLE] = ','.join(filter(None, marks))
    # An evaluator has no address.
    address = (cluster[task.type][task.index] if task.type in cluster else '')
    role = role_process.Role(
        task, command, env, self._log_dir / f'{task.type}-{task.index}.log',
        address, cpus)
    self.roles.append(role)
    self._tell_guard('watch', role)
    return role

  def _horovod_variables(self, cluster: Mapping[str, Sequence[str]],
                         ) -> dict[str, str]:
    """Returns the variable for Horovod; none if other machines choose too."""
    # A worker that joins knows its own number and address alone.
    of_jobs = [addresses.values() if isinstance(addresses, Mapping) else
               addresses for addresses in cluster.values()]
    hosts = {address.rpartition(':')[0]
             for addresses in of_jobs for address in addresses}
    return {} if len(hosts) > 1 else {
        cluster_config.HOROVOD_PORT_VARIABLE: self._horovod_port}

  def rounds(self) -> Iterator[set[str]]:
    """Yields the jobs of running roles ten times a second, until none runs.

    The policy may restart a role that fails. Otherwise the run continues
    without a worker, because training is asynchronous, and without an
    evaluator. The failure of any other role raises `RoleError` with the last
    lines of its log. A signal raises `KeyboardInterrupt`.
    """
    running = None
    while running != set():
      self.check()
      running = {role.task.type for role in self.roles if role.is_running}
      yield running
      time.sleep(_POLL_SECS)

  def wait_for_ps(self, timeout: float) -> bool:
    """Waits for the parameter servers to end; returns whether all have."""
    servers = [role for role in self.roles if role.task.type == 'ps']
    return self._wait(servers, timeout, num_signals=0)

  def _wait(self, roles: Sequence[role_process.Role], secs: float,
            num_signals: int) -> bool:
    """Waits for roles, or another signal; returns whether all have ended."""
    deadline = time.monotonic() + secs
    while (any([role.poll() is None for role in roles]) and
           time.monotonic() < deadline and
           self._interrupts.count == num_signals):
      time.sleep(_POLL_SECS / 2)
    return all(role.status is not None for role in roles)

  def check(self) -> None:
    """Checks and handles each process once; raises as `rounds` does."""
    self._interrupts.raise_if_any()
    if self._guard.poll() is not None:
      self._start_guard()
    ended = [role for role in self.roles
             if role.status is None and role.poll() is not None]
    # The first role to end probably caused the ends of the others.
    for role in sorted(ended, key=role_process.Role.last_write):
      self._handle_end(role)
    for role in self.roles:
      if role.restart_at is not None and role.restart_at <= time.monotonic():
        num_reasons = len(role.reasons)
        if role.restart(self._spare):
          self._tell_guard('watch', role)
        elif len(role.reasons) > num_reasons:  # Its log cannot be written.
          self._on_restart(role, role_process.RETRY_SECS)
    if self._policy.has_spare:
      self._keep_spare()

  def _keep_spare(self) -> None:
    """Starts a spare if there is none, unless tasks have just started."""
    if self._spare is not None and not self._spare.is_used:
      return
    self._spare = None
    roles = [role for role in self.roles if spare_lib.can_run(role.command)]
    if roles and all(role.age > _SPARE_AFTER_SECS for role in self.roles):
      role = min(roles, key=lambda role: role.task.type != 'ps')
      self._spare = spare_lib.Spare(role.command, role.environment)

  def end(self) -> None:
    """Ends every process that still runs, and its children.

    The parameter servers end last: they hold the variables for the chief's last
    checkpoint. Another signal to this process cuts the grace time short.
    """
    if self._spare is not None:
      self._spare.end()
    seen = self._interrupts.count
    for is_ps in (False, True):
      roles = [r for r in self.roles if (r.task.type == 'ps') is is_ps]
      for role in roles:
        role.restart_at = None
        role.signal(signal.SIGTERM)
      self._wait(roles, self._grace_secs, seen)
      for role in roles:
        role.signal(signal.SIGKILL)
        role.wait(self._grace_secs)
    guard.kill_marked(self._mark)

  def processes(self) -> list[int]:
    """Returns the ids of the roles' processes and of their children."""
    return guard.marked_processes(self._mark)

  def kill(self, role: role_process.Role, why: str) -> None:
    """Kills a role for a reason, `why`; the policy may restart it."""
    role.reasons.append(why)
    role.signal(signal.SIGKILL)
    role.wait(_KILL_LIMIT_SECS)
    self._handle_end(role)

  def give_up(self, role: role_process.Role, why: str) -> None:
    """Ends a role for good, which is lost then; `why` is for the summary."""
    role.restart_at = None
    role.signal(signal.SIGKILL)
    role.wait(_KILL_LIMIT_SECS)
    self._tell_guard('forget', role)
    role.reasons.append(why)
    self.lost.append(role)

  def _handle_end(self, role: role_process.Role) -> None:
    self._tell_guard('forget', role)
    if role.status == 0:
      return
    role.reasons.append(role.describe_end())
    delay = self._policy.delay(role.task.type, role.status, role.num_restarts,
                               role.num_in_a_row)
    if delay is not None:
      self._restart(role, delay)
      return
    failure = role.describe_failure()
    self._first_failure = self._first_failure or (role, failure)
    if role.task.type in _DISPENSABLE:
      self.lost.append(role)
      self._on_lost(role)
      return
    self.failed = role
    raise RoleError(self._describe_failures(role, failure))

  def _describe_failures(self, role: role_process.Role, failure: str) -> str:
    """Returns the first failure and, if another one ended the run, that too."""
    first, first_failure = self._first_failure
    alike = [r.task.name for r in self.roles
             if r is first or r.poll() is not None and r.ended_as(first)]
    if role.task.name not in alike:
      first_failure += f'\n\nLater {failure}'
    if len(alike) > 1:
      first_failure += f'\n{", ".join(alike)} ended alike.'
    num_ps = sum(r.task.type == 'ps' for r in self.roles)
    if role.task.type == 'ps' and role.num_restarts and num_ps > 1:
      first_failure += (
          f'\n{role.task.name} has restarted {role.num_restarts} times, and '
          'does not restart again. To continue from the newest checkpoint, '
          'repeat the command; to continue without this parameter server, '
          f'repeat it with --ps={num_ps - 1}.')
    return first_failure

  def _restart(self, role: role_process.Role, delay: float) -> None:
    group = [role]
    if self._policy.is_together and role.task.trains:
      # Roles that have ended, too: the others would wait for them.
      group += [r for r in self.roles
                if r is not role and r.task.trains]
    for member in group:
      if member.status is None:
        member.signal(signal.SIGKILL)
        member.wait(_KILL_LIMIT_SECS)
        self._tell_guard('forget', member)
      if member is not role:
        member.reasons.append(f'was restarted with {role.task.name}')
      member.restart_at = time.monotonic() + delay
    self._on_restart(role, delay)

  def _start_guard(self) -> None:
    # -I: neither this directory nor PYTHONPATH may shadow a standard module.
    self._guard = subprocess.Popen(
        [sys.executable, '-I', '-S', str(_GUARD), self._mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True)
    for role in self.roles:
      if role.status is None:
        self._tell_guard('watch', role)

  def _tell_guard(self, command: str, role: role_process.Role) -> None:
    with contextlib.suppress(BrokenPipeError):
      self._guard.stdin.write(f'{command} {role.pid}\n')
      self._guard.stdin.flush()
