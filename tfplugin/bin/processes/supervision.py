# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Supervision of a run: restarts, losses, stalls and their messages."""

from __future__ import annotations

import dataclasses
import pathlib
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.bin.processes import listeners
from tfplugin.bin.processes import local_cluster
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import role_process
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import task_states
from tfplugin.bin.processes import watches
from tfplugin.distribute import cluster_config
from tfplugin.events import event_log
from tfplugin.events import process
from tfplugin.events import record
from tfplugin.faults import language
from tfplugin.hooks.shutdown import task_records

_REPORT_AFTER_SECS = 5.0


@dataclasses.dataclass(frozen=True)
class Settings:
  """The settings of the supervision.

  Attributes:
    model_dir: Where the tasks write their events; None if it is not known.
    session: The number of the run's session; None: each task counts its own.
    keep_going: Whether the run continues without a lost worker.
    stall_limit: The longest time without a step in seconds; 0: no limit.
    grace_secs: Seconds from SIGTERM to SIGKILL.
    is_restricted: Whether each server is reachable at its own address alone.
    left_behind_secs: How long a worker may run after the chief and the
      parameter servers have ended.
    tf_config: Further keys of the TF_CONFIG of each task.
    inject: The faults to cause, as a text; empty: none.
  """

  log_dir: str
  summary_path: pathlib.Path
  model_dir: str | None = None
  session: int | None = None
  policy: restarts.RestartPolicy = restarts.RestartPolicy()
  keep_going: bool = True
  stall_limit: float = 0.0
  grace_secs: float = 30.0
  is_restricted: bool = True
  left_behind_secs: float = 60.0
  tf_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  inject: str = ''


class SupervisedRun:
  """The supervised processes of a run; a context manager.

  After the context `summary` is the outcome of the tasks, as in the file.
  """

  def __init__(self, settings: Settings, addresses: Mapping[str, list[str]],
               tasks: Sequence[cluster_config.Task],
               say: Callable[[str], None]):
    """Starts no process yet; `say` shows a line.

    `addresses` is the cluster of the tasks; empty for a process alone.
    """
    self.summary: list[run_summary.TaskSummary] = []
    # When each worker was lost that the parameter servers know nothing of.
    self._unreported: dict[str, float] = {}
    self._settings = settings
    self._addresses = addresses
    self._say = say
    self._address_filter = listeners.AddressFilter(say)
    self._states = task_states.TaskStates(settings.model_dir,
                                          [task.name for task in tasks])
    self._stalls = watches.StallWatch(self._states, settings.stall_limit,
                                      settings.policy, say)
    self._left_behind = watches.LeftBehindWatch(
        self._states, settings.left_behind_secs, say)
    self.cluster = local_cluster.LocalCluster(
        settings.log_dir,
        on_lost=self._handle_lost,
        policy=settings.policy,
        on_restart=self._handle_restart,
        grace_secs=settings.grace_secs,
        tf_config=settings.tf_config)

  def __enter__(self) -> SupervisedRun:
    self.cluster.__enter__()
    return self

  def __exit__(self, unused_type, error, traceback) -> None:
    self.cluster.__exit__(unused_type, error, traceback)
    self._states.update()
    is_stopped = isinstance(error, KeyboardInterrupt)
    if error is not None:
      self._write_last_words(error, is_stopped)
    if is_stopped:
      error.args = (task_states.describe_stop(self._states.states),)
    self.summary = run_summary.summarize(self.cluster, self._states.states,
                                         is_stopped)
    if self._settings.model_dir and any(
        task.status == 'done' for task in self.summary) and not any(
            state.last for state in self._states.states.values()):
      self._say('No task wrote events to '
                f'--model_dir={self._settings.model_dir}: the program has '
                'another directory, or trains without '
                'tfplugin.estimator.train_and_evaluate. Give both the same '
                'directory.')
    self._tell_missing_faults()
    why = None if error is None else str(error) or type(error).__name__
    try:
      run_summary.write(self._settings.summary_path, self.summary, why)
    except OSError as e:  # A full disk does not change the outcome.
      self._say(f'The summary cannot be written: {e.strerror}.')

  def _tell_missing_faults(self) -> None:
    """Says which faults no task caused."""
    if not self._settings.inject:
      return
    if self._settings.model_dir is None:
      self._say('The faults of --inject that came are in the events of the '
                'model_dir. Give --model_dir to see the others here.')
      return
    came = {fault for state in self._states.states.values()
            for fault in state.faults}
    for fault in map(str, language.parse(self._settings.inject)):
      if fault not in came:
        self._say(f'The fault "{fault}" never came: the run ended before it, '
                  'or the program does not train by '
                  'tfplugin.estimator.train_and_evaluate, which causes faults.')

  def _write_last_words(self, error: BaseException, is_stopped: bool) -> None:
    """Writes the events of tasks that a signal ended at once.

    A chief that was ended as another task failed has the failure.
    """
    for role in self.cluster.roles:
      last = self._states.states[role.task.name].last
      if last is None or record.is_done(last):
        continue
      log = event_log.EventLog(self._settings.model_dir, role.task.name,
                               role.pid, last.session)
      if is_stopped and role not in self.cluster.lost and (
          last.name not in record.LAST_WORDS):
        log.write('stopped', signal='SIGTERM')
      elif not is_stopped and role.task.type == 'chief' and (
          last.name != 'dying'):
        log.write('dying', error=type(error).__name__,
                  message=str(error)[:1000], step=last.step)
      log.close()
    self._states.update()

  @property
  def states(self) -> Mapping[str, task_states.State]:
    """The states of the tasks from their events in this run, by name."""
    return self._states.states

  @property
  def ends(self) -> dict[str, str]:
    """Why each task without a process has none, in words, by name."""
    return {role.task.name: role.describe_absence()
            for role in self.cluster.roles if role.status is not None}

  def start(self, task: cluster_config.Task, command: Sequence[str],
            environment: Mapping[str, str],
            cpus: Sequence[int] | None = None) -> role_process.Role:
    """Starts a task; see `LocalCluster.start`.

    A fault `upgrade` of the task changes the Python of its restarts.
    """
    session = self._settings.session
    if session is not None:
      environment = {**environment, event_log.SESSION_VARIABLE: str(session)}
    role = self.cluster.start(task, command, self._addresses, environment, cpus)
    role.command = language.restart_command(
        command, task.name, environment.get(process.FAULTS_VARIABLE, ''))
    return role

  def rounds(self) -> Iterator[set[str]]:
    """Yields as `LocalCluster.rounds` does; raises the same errors.

    A stalled run raises `StallError`, too. A worker that hangs after the others
    have ended is ended, and is lost.
    """
    for running in self.cluster.rounds():
      self._restrict_servers()
      self._report_lost()
      self._states.update()
      self._stalls.look(self.cluster)
      for role in self._left_behind.look(self.cluster):
        if not self._settings.keep_going:
          self.cluster.failed = role
          raise local_cluster.RoleError(role.describe_failure())
      yield running

  def _restrict_servers(self) -> None:
    addresses = [role.address for role in self.cluster.roles
                 if role.address and role.status is None]
    if self._settings.is_restricted and addresses:
      self._address_filter.look(addresses, self.cluster.processes)

  def _handle_restart(self, role: role_process.Role, delay: float) -> None:
    self._say(f'{role.task.name} {role.reasons[-1]}; it restarts in {delay:g} '
              f's ({role.num_restarts + 1} of '
              f'{self._settings.policy.max_restarts}). Its log: '
              f'{role.log_path}')

  def _handle_lost(self, role: role_process.Role) -> None:
    is_worker = role.task.type == 'worker'
    if is_worker and not self._settings.keep_going:
      self.cluster.failed = role
      raise local_cluster.RoleError(role.describe_failure())
    self._say(f'{role.task.name} {role.describe_end()}; the run continues '
              f'without it. Its log: {role.log_path}')
    if is_worker:
      self._unreported[role.task.name] = time.monotonic()

  def _report_lost(self) -> None:
    """Reports lost workers; the chief would wait for their last step.

    Parameter servers of this launcher have time to end: with a fault of the
    program they fail like the worker, and nobody would answer.
    """
    has_ps = any(role.task.type == 'ps' for role in self.cluster.roles)
    delay = _REPORT_AFTER_SECS if has_ps else 0.0
    for name, lost_at in list(self._unreported.items()):
      if time.monotonic() - lost_at >= delay:
        del self._unreported[name]
        task_records.report_finished(
            tf.train.ClusterSpec(dict(self._addresses)), name,
            time_limit_secs=5.0)
