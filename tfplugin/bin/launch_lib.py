# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs any program as a local cluster: one process for each task."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shutil
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Optional

from tfplugin.bin import ports
from tfplugin.bin import run_files
from tfplugin.bin.launches import elsewhere
from tfplugin.bin.launches import layouts
from tfplugin.bin.launches import own_host
from tfplugin.bin.launches import starts as starts_lib
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import output
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import supervision
from tfplugin.faults import environment

_LAST_PORT = 65535
_WARNING = ("TensorFlow's servers ask nobody who he is: keep the machines of "
            'this run in a private network.')


@dataclasses.dataclass(frozen=True)
class LaunchOptions:
  """The settings of a launch.

  Attributes:
    command: The program and its arguments, for every task that has none of its
      own.
    logs_dir: Where the log files and the summary go.
    workers: Workers besides the chief; None: one, or with `hosts` as many as
      make one task that trains on each.
    ps: Parameter servers.
    evaluator: Whether an evaluator runs too.
    bind: The address of this machine at which the tasks are reached; None:
      loopback.
    hosts: The machines of the run; empty: this one.
    host: Which of them this is; empty: found by its name.
    port: The first of those that tasks on several machines listen on.
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
  workers: Optional[int] = None
  ps: int = 1
  evaluator: bool = False
  bind: Optional[str] = None
  hosts: tuple[str, ...] = ()
  host: str = ''
  port: Optional[int] = None
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
    for name, value in (('workers', self.num_workers), ('ps', self.ps)):
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
    self._check_places()
    self.policy()
    environment.check(self.inject, self.num_workers, self.ps,
                      self.evaluator)
    output.TaskOutput(print, pattern=self.grep)
    self._check_commands()

  def _check_places(self) -> None:
    layouts.check_hosts(self.hosts)
    if not self.hosts:
      ports.check_bind(self.bind or ports.LOOPBACK)
    for name, is_of_hosts in (('bind', False), ('host', True), ('port', True)):
      if getattr(self, name) and is_of_hosts is not bool(self.hosts):
        raise ValueError(
            f'`{name}` is of runs on '
            f'{"several machines" if is_of_hosts else "one machine"}. '
            f'Received: {getattr(self, name)!r}. Leave it out, or '
            f'{"give" if is_of_hosts else "leave out"} `hosts`.')
    if self.port is not None and not 0 < self.port <= _LAST_PORT:
      raise ValueError(f'`port` must be from 1 to {_LAST_PORT}. Received: '
                       f'{self.port!r}')

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

  @property
  def num_workers(self) -> int:
    """The workers besides the chief."""
    if self.workers is not None:
      return self.workers
    return len(self.hosts) - 1 if self.hosts else 1

  def layout(self) -> layouts.Layout:
    """Returns where the tasks are.

    Raises:
      ValueError: it cannot be found out which machine this is, or there is no
        task for one.
    """
    if self.hosts:
      return layouts.on_hosts(
          self.hosts, own_host.find(self.hosts, self.host), self.num_workers,
          self.ps, self.evaluator, self.port or layouts.DEFAULT_PORT)
    return layouts.on_this_machine(self.num_workers, self.ps, self.evaluator,
                                   self.bind or ports.LOOPBACK)

  def task_settings(self) -> task_settings.TaskSettings:
    """Returns what some tasks have for themselves."""
    return task_settings.parse(self.commands, self.env, self.cpus)

  def policy(self) -> restarts.RestartPolicy:
    """Returns who is started again."""
    return restarts.RestartPolicy(
        restarts.parse(self.restart), self.max_restarts,
        self.restart_delay_secs,
        is_together=not self.ps and self.num_workers > 0)


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
  layout = options.layout()
  output.check_shown(options.show, [task.name for task in layout.tasks])
  settings = options.task_settings()
  starts = starts_lib.make(layout.tasks, options.command, settings,
                           options.inject)
  if options.dry_run:
    for line in starts_lib.describe(layout, starts):
      say(line)
    return
  settings.check_cpus(layout.own)
  if layout.who:
    layout.check_ports()
    say(_WARNING)
  run_files.make_dir('logs_dir', options.logs_dir)
  run = supervision.SupervisedRun(_settings(options, layout), layout.cluster,
                                  layout.tasks, say)
  with contextlib.ExitStack() as stack:
    if options.model_dir and layout.has_chief:
      stack.enter_context(run_files.reserved(options.model_dir))
    # After the processes have ended, however they did.
    stack.callback(lambda: _show_summary(run, say))
    stack.enter_context(run)
    _run(options, layout, run,
         [start for start in starts if start.task in layout.own], say)


def _run(options: LaunchOptions, layout: layouts.Layout,
         run: supervision.SupervisedRun, starts: Sequence[starts_lib.Start],
         say: Callable[[str], None]) -> None:
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
    run.wait(spare=('ps', 'evaluator'), while_waiting=shown.show,
             is_over=_end_elsewhere(options, layout, run))
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


def _end_elsewhere(options: LaunchOptions, layout: layouts.Layout,
                   run: supervision.SupervisedRun) -> Callable[[], bool]:
  """Returns what tells that nobody elsewhere needs the tasks of this launch."""
  if not layout.training_elsewhere:
    return lambda: True
  rules = options.policy()
  away_secs = elsewhere.AWAY_SECS + max(
      rules.longest_delay(job) for job in ('chief', 'worker'))
  watch = elsewhere.Elsewhere(layout.cluster, layout.training_elsewhere,
                              max(away_secs, options.ps_limit_secs))
  # Parameter servers and an evaluator may end by themselves, too.
  return lambda: (not any(role.is_running for role in run.cluster.roles) or
                  watch.have_ended())


def _settings(options: LaunchOptions,
              layout: layouts.Layout) -> supervision.Settings:
  return supervision.Settings(
      log_dir=options.logs_dir,
      summary_path=run_summary.path_in(options.logs_dir, layout.who),
      model_dir=options.model_dir,
      policy=options.policy(),
      keep_going=options.keep_going,
      stall_limit=options.stall_limit,
      grace_secs=options.grace_secs,
      is_fenced=not layout.who)


def _show_summary(run: supervision.SupervisedRun,
                  say: Callable[[str], None]) -> None:
  for line in run_summary.table(run.summary):
    say(line)
