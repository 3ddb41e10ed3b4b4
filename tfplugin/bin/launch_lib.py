# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs any program as a local cluster: one process for each task."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

from tfplugin.bin import ports
from tfplugin.bin import run_files
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import output
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import supervision
from tfplugin.distribute import cluster_config
from tfplugin.faults import environment


@dataclasses.dataclass(frozen=True)
class LaunchOptions:
  """The settings of a launch.

  Attributes:
    command: The program and its arguments, for every task that has none of its
      own.
    logs_dir: Where the log files and the summary go.
    workers: Workers besides the chief.
    ps: Parameter servers.
    evaluator: Whether an evaluator runs too.
    bind: The address of this machine at which the tasks are reached.
    keep_going: Whether the run goes on without a worker that is lost.
    evaluator_limit_secs: How long the evaluator may take after the others have
      ended, in seconds.
    ps_limit_secs: How long a parameter server has to end by itself after all
      the others, in seconds; most programs' never do.
    restart: Which tasks start again; see `restarts.parse`.
    max_restarts: How often each does.
    restart_delay_secs: Before the first; doubled for each further one.
    model_dir: The program's model_dir, where its events are and other runs are
      kept out of; None: not known.
    stall_limit: How long no task may make a step, in seconds; 0: for ever.
    grace_secs: How long a task that is to end has for its last checkpoint.
    show: Whose output is shown: tasks, jobs, or 'all'.
    grep: A regular expression; only lines in which it is found are shown.
    color: Whether the prefixes are coloured: 'auto', 'always' or 'never'.
    commands: Those of some tasks; see `task_settings.parse`.
    env: Environment variables of some tasks, likewise.
    cpus: The CPUs that some tasks run on, likewise.
    inject: Faults that the tasks bring upon themselves; see docs/faults.md.
    dry_run: Whether only the TF_CONFIG of each task is shown.
  """

  command: tuple[str, ...]
  logs_dir: str
  workers: int = 1
  ps: int = 1
  evaluator: bool = False
  bind: str = ports.LOOPBACK
  keep_going: bool = True
  evaluator_limit_secs: float = 120.0
  ps_limit_secs: float = 2.0
  restart: str = restarts.NEVER
  max_restarts: int = 3
  restart_delay_secs: float = 1.0
  model_dir: Optional[str] = None
  stall_limit: float = 0.0
  grace_secs: float = 30.0
  show: tuple[str, ...] = (output.ALL,)
  grep: str = ''
  color: str = 'auto'
  commands: tuple[str, ...] = ()
  env: tuple[str, ...] = ()
  cpus: tuple[str, ...] = ()
  inject: str = ''
  dry_run: bool = False

  def __post_init__(self):
    """Checks the settings.

    Raises:
      ValueError: a setting is out of its range, or there is no such program.
    """
    for name in ('workers', 'ps'):
      value = getattr(self, name)
      if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f'`{name}` must be an integer of at least 0. '
                         f'Received: {value!r}')
    for name in ('evaluator_limit_secs', 'ps_limit_secs', 'stall_limit',
                 'grace_secs'):
      value = getattr(self, name)
      if not 0 <= value < math.inf:
        raise ValueError(f'`{name}` must be at least 0 and finite. '
                         f'Received: {value!r}')
    if self.stall_limit and not self.model_dir:
      raise ValueError('`stall_limit` needs the events of the tasks, which are '
                       'in their model_dir. Received: no `model_dir`. Give '
                       'the one that the program uses.')
    ports.check_bind(self.bind)
    self.policy()
    environment.check(self.inject, self.workers, self.ps, self.evaluator)
    output.TaskOutput(print, pattern=self.grep)
    self._check_commands()

  def _check_commands(self) -> None:
    commands = self.task_settings().commands
    if not self.command and not commands:
      raise ValueError('A program to start must follow the flags. Received: '
                       'none. Call e.g. '
                       '`tfplugin-launch --workers=2 -- python program.py`.')
    for command in filter(None, (self.command, *commands.values())):
      if shutil.which(command[0]) is None:
        raise ValueError('The program must be one that can be started. '
                         f'Received: {command[0]!r}, which is not found, or '
                         'not executable. Give its path, or `python '
                         'program.py`.')

  def task_settings(self) -> task_settings.TaskSettings:
    """Returns what some tasks have for themselves."""
    return task_settings.parse(self.commands, self.env, self.cpus)

  def policy(self) -> restarts.RestartPolicy:
    """Returns who is started again."""
    return restarts.RestartPolicy(
        restarts.parse(self.restart), self.max_restarts,
        self.restart_delay_secs, is_together=not self.ps and self.workers > 0)


class _Start(NamedTuple):
  """A task, and what it is started with."""

  task: cluster_config.Task
  command: Sequence[str]
  variables: Mapping[str, str]
  cpus: Optional[Sequence[int]]


def _starts(options: LaunchOptions,
            tasks: Sequence[cluster_config.Task]) -> list[_Start]:
  """Returns what each task is started with, once all of it is checked."""
  settings = options.task_settings()
  settings.check(tasks)
  settings.check_cpus(tasks)
  faults = environment.variables(options.inject)
  starts = [
      _Start(task, settings.command_of(task) or options.command,
             {**settings.variables_of(task), **faults}, settings.cpus_of(task))
      for task in tasks]
  for start in starts:
    if not start.command:
      raise ValueError('`command` must name a program for each task, where '
                       'none follows the flags. Received: none for '
                       f'{start.task.name}. Give one to `all`, or to its job.')
  return starts


def launch(options: LaunchOptions, say: Callable[[str], None] = print) -> None:
  """Runs the program in every task of the cluster until the work is done.

  The run is done when the chief and the workers have ended; the parameter
  servers, which may never end by themselves, are ended then. Output is shown as
  it comes; all of it is in the log files. The last lines say what became of
  each task, and `summary.json` beside the logs does.

  Args:
    options: The settings.
    say: Shows a line.

  Raises:
    ValueError: the logs cannot be written, or there is no task to show.
    RuntimeError: a task died that cannot be spared, or none made a step; the
      message has the last lines of the log of the first that died. Or another
      run is in the model_dir.
    KeyboardInterrupt: the user ended it. No process is left in any case.
  """
  cluster = ports.make_cluster(options.workers, options.ps, options.bind)
  tasks = cluster_config.tasks_of(cluster, options.evaluator)
  output.check_shown(options.show, [task.name for task in tasks])
  starts = _starts(options, tasks)
  if options.dry_run:
    _describe(cluster, starts, say)
    return
  run_files.make_dir('logs_dir', options.logs_dir)
  run = supervision.SupervisedRun(_settings(options), cluster, tasks, say)
  with contextlib.ExitStack() as stack:
    if options.model_dir:
      stack.enter_context(run_files.reserved(options.model_dir))
    # After the processes have ended, however they did.
    stack.callback(lambda: _show_summary(run, say))
    stack.enter_context(run)
    _run(options, run, starts, say)


def _run(options: LaunchOptions, run: supervision.SupervisedRun,
         starts: Sequence[_Start], say: Callable[[str], None]) -> None:
  shown = output.TaskOutput(
      say, options.show, options.grep, output.should_color(
          options.color, sys.stdout.isatty(), os.environ.get('NO_COLOR')))
  for start in starts:
    role = run.start(
        start.task, start.command,
        {'PYTHONUNBUFFERED': '1', **start.variables}, start.cpus)
    # The lines of an earlier run are not shown again.
    shown.follow(role)
  names = ', '.join(start.task.name for start in starts)
  say(f'Started {names}; their logs are in {options.logs_dir}')
  try:
    run.wait(spare=('ps', 'evaluator'), while_waiting=shown.show)
    try:
      run.wait(while_waiting=shown.show, timeout=options.evaluator_limit_secs)
    except TimeoutError:
      say('The evaluator did not end within '
          f'{options.evaluator_limit_secs:g} s of the others; it is ended now.')
    run.cluster.wait_for_ps(options.ps_limit_secs)
  except KeyboardInterrupt:
    say(f'Ending the tasks; each has {options.grace_secs:g} s for its last '
        'checkpoint. Another signal ends them now.')
    run.cluster.end()
    raise
  finally:
    shown.show(is_all=True)


def _settings(options: LaunchOptions) -> supervision.Settings:
  return supervision.Settings(
      log_dir=options.logs_dir,
      summary_dir=options.logs_dir,
      model_dir=options.model_dir,
      policy=options.policy(),
      keep_going=options.keep_going,
      stall_limit=options.stall_limit,
      grace_secs=options.grace_secs)


def _show_summary(run: supervision.SupervisedRun,
                  say: Callable[[str], None]) -> None:
  for line in run_summary.table(run.summary):
    say(line)


def _describe(cluster: Mapping[str, list[str]], starts: Sequence[_Start],
              say: Callable[[str], None]) -> None:
  """Shows what would be started, as commands of a shell."""
  for start in starts:
    variables = {'TF_CONFIG': cluster_config.encode(cluster, start.task),
                 **start.variables}
    words = [f'{k}={shlex.quote(v)}' for k, v in variables.items()]
    if start.cpus is not None:
      words.append(f'taskset --cpu-list {",".join(map(str, start.cpus))}')
    say(f'# {start.task.name}')
    say(' '.join([*words, shlex.join(start.command)]))
