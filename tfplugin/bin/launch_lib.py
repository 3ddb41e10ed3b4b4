# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs any program as a local cluster: one process for each task."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import shutil
from collections.abc import Callable
from collections.abc import Mapping

import tensorflow as tf

from tfplugin.bin import local_cluster
from tfplugin.bin import ports
from tfplugin.bin import run_files
from tfplugin.distribute import cluster_config
from tfplugin.hooks import finish_board


@dataclasses.dataclass(frozen=True)
class LaunchOptions:
  """The settings of a launch.

  Attributes:
    command: The program and its arguments, the same for every task.
    logs_dir: Where the log files go.
    workers: Workers besides the chief.
    ps: Parameter servers.
    evaluator: Whether an evaluator runs too.
    keep_going: Whether the run goes on without a worker that dies.
    evaluator_limit_secs: How long the evaluator may take after the others have
      ended, in seconds.
    ps_limit_secs: How long a parameter server has to end by itself after all
      the others, in seconds; most programs' never do.
  """

  command: tuple[str, ...]
  logs_dir: str
  workers: int = 1
  ps: int = 1
  evaluator: bool = False
  keep_going: bool = True
  evaluator_limit_secs: float = 120.0
  ps_limit_secs: float = 2.0

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
    for name in ('evaluator_limit_secs', 'ps_limit_secs'):
      value = getattr(self, name)
      if not 0 <= value < math.inf:
        raise ValueError(f'`{name}` must be at least 0 and finite. '
                         f'Received: {value!r}')
    if not self.command:
      raise ValueError('A program to start must follow the flags. Received: '
                       'none. Call e.g. '
                       '`tfplugin-launch --workers=2 -- python program.py`.')
    if shutil.which(self.command[0]) is None:
      raise ValueError('The program must be one that can be started. Received: '
                       f'{self.command[0]!r}, which is not found, or not '
                       'executable. Give its path, or `python program.py`.')


def launch(options: LaunchOptions, say: Callable[[str], None] = print) -> None:
  """Runs the program in every task of the cluster until the work is done.

  The run is done when the chief and the workers have ended; the parameter
  servers, which may never end by themselves, are ended then. The chief's
  output is shown as it comes; all output is in the log files.

  Args:
    options: The settings.
    say: Shows a line.

  Raises:
    ValueError: the logs cannot be written.
    RuntimeError: a task died that cannot be spared; the message has the last
      lines of its log.
    KeyboardInterrupt: the user ended it. No process is left in any case.
  """
  cluster = ports.make_cluster(options.workers, options.ps)

  def handle_lost(role: local_cluster.Role) -> None:
    if not options.keep_going:
      raise local_cluster.RoleError(role.describe_failure())
    say(f'{role.task.name} {role.describe_end()}; the run goes on without it. '
        f'Its log: {role.log_path}')
    # For a chief that waits for the last step of the workers.
    finish_board.report_finished(tf.train.ClusterSpec(dict(cluster)),
                                 role.task.name, time_limit_secs=5.0)

  run_files.make_dir('logs_dir', options.logs_dir)
  show = _Follower(pathlib.Path(options.logs_dir, 'chief-0.log'), say)
  with local_cluster.LocalCluster(options.logs_dir,
                                  on_lost=handle_lost) as processes:
    _start(options, cluster, processes)
    names = ', '.join(role.task.name for role in processes.roles)
    say(f'Started {names}; their logs are in {options.logs_dir}')
    processes.wait(spare=('ps', 'evaluator'), while_waiting=show)
    show(is_all=True)
    try:
      processes.wait(timeout=options.evaluator_limit_secs)
    except TimeoutError:
      say('The evaluator did not end within '
          f'{options.evaluator_limit_secs:g} s of the others; it is ended now.')
    processes.wait_for_ps(options.ps_limit_secs)


def _start(options: LaunchOptions, cluster: Mapping[str, list[str]],
           processes: local_cluster.LocalCluster) -> None:
  for task in cluster_config.tasks_of(cluster, options.evaluator):
    processes.start(task, options.command, cluster, {'PYTHONUNBUFFERED': '1'})


class _Follower:
  """Shows the lines that were added to a file since the last call."""

  def __init__(self, path: pathlib.Path, say: Callable[[str], None]):
    self._path = path
    self._say = say
    # The lines of an earlier run are not shown again.
    self._position = path.stat().st_size if path.exists() else 0

  def __call__(self, is_all: bool = False) -> None:
    with open(self._path, 'rb') as log:
      log.seek(self._position)
      added = log.read()
    if not is_all:  # The rest of the last line is to come.
      added = added[:added.rfind(b'\n') + 1]
    self._position += len(added)
    for line in added.splitlines():
      self._say(f'chief:0| {line.decode(errors="replace")}')
