# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of a launch, and their checks."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Collection
from collections.abc import Sequence

from tfplugin.bin import command_line
from tfplugin.bin.launches import joins
from tfplugin.bin.launches import layouts
from tfplugin.bin.launches import manifests
from tfplugin.bin.launches import slurm_step
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import output
from tfplugin.bin.processes import ports
from tfplugin.bin.processes import restarts
from tfplugin.distribute.sessions import membership
from tfplugin.faults import language

_LAST_PORT = 65535
# Python's options without a value.
_PYTHON_FLAGS = ('-u', '-B', '-O', '-OO', '-E', '-I', '-s', '-S', '-q', '-v')
# Fields that have an effect in manifests alone.
OF_MANIFESTS = ('run_name', 'image', 'claim', 'claim_size', 'resources')
# Other fields that a manifest uses.
_IN_MANIFESTS = ('command', 'workers', 'max_workers', 'ps',
                 'evaluator', 'restart', 'max_restarts', 'grace_secs',
                 'commands', 'env', 'inject', 'manifest')
# Fields of a run, which a worker that joins does not have.
_NOT_IN_JOINS = ('workers', 'max_workers', 'ps', 'evaluator', 'bind', 'hosts',
                 'slurm', 'host', 'port', 'keep_going', 'evaluator_limit_secs',
                 'ps_limit_secs', 'inject', 'manifest', 'dry_run')


@dataclasses.dataclass(frozen=True)
class LaunchOptions:
  """The settings of a launch: values of `launch.py`'s flags of the same names.

  `command` is the program of all tasks but those in `commands`, which the flag
  `--command` sets. `--workers=MIN:MAX` sets `max_workers`, too. An empty
  `logs_dir` is a directory under runs/.
  """

  command: tuple[str, ...]
  logs_dir: str = ''
  workers: int | None = None
  max_workers: int | None = None
  join: str = ''
  ps: int = 1
  evaluator: bool = False
  bind: str | None = None
  hosts: tuple[str, ...] = ()
  slurm: bool = False
  host: str = ''
  port: int | None = None
  keep_going: bool = True
  evaluator_limit_secs: float = 120.0
  ps_limit_secs: float = 2.0
  restart: str = restarts.NEVER
  max_restarts: int = 3
  restart_delay_secs: float = 1.0
  spare: bool = False
  model_dir: str | None = None
  steps: int | None = None
  stall_limit: float = 0.0
  grace_secs: float = 30.0
  show: tuple[str, ...] = (output.ALL,)
  grep: str = ''
  hide: str = output.DEPRECATIONS
  color: str = 'auto'
  commands: tuple[str, ...] = ()
  env: tuple[str, ...] = ()
  cpus: tuple[str, ...] = ()
  inject: str = ''
  manifest: str = ''
  run_name: str = 'tfplugin'
  image: str = ''
  claim: str = ''
  claim_size: str = ''
  resources: tuple[str, ...] = ()
  dry_run: bool = False

  def __post_init__(self):
    """Raises `ValueError` for a wrong setting or a missing program."""
    command_line.check_integer('workers', self.workers or 0, 0)
    command_line.check_integer('ps', self.ps, 0)
    if self.steps is not None:
      command_line.check_integer('steps', self.steps, 1)
    for name in ('evaluator_limit_secs', 'ps_limit_secs', 'stall_limit',
                 'grace_secs'):
      command_line.check_finite(name, getattr(self, name))
    self._check_membership()
    self._check_manifest()
    self._check_places()
    self.policy()
    language.check_tasks(self.inject, self.num_workers, self.ps,
                         self.evaluator)
    output.TaskOutput(print, pattern=self.grep)
    self._check_commands()

  def _check_membership(self) -> None:
    if self.max_workers is not None and not self.ps:
      raise ValueError(
          'Workers can join only a run with parameter servers. Received: '
          f'--workers=MIN:{self.max_workers} and --ps=0. Without them every '
          'step needs every worker, and another number of workers restarts the '
          'whole group: start it again with the new number.')
    if not self.join:
      return
    joins.check_address(self.join)
    self._check_unset(_NOT_IN_JOINS, '`join`, which starts one worker')

  def _check_unset(self, names: Collection[str], what: str) -> None:
    """Raises `ValueError` if a setting is given that has no effect."""
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      if field.name in names and value != field.default:
        raise ValueError(f'`{field.name}` has no effect with {what}. Received: '
                         f'{value!r}. Leave it out.')

  def _check_manifest(self) -> None:
    if not self.manifest:
      return
    self._check_unset(
        {field.name for field in dataclasses.fields(self)}.difference(
            OF_MANIFESTS, _IN_MANIFESTS), '`manifest`')
    self.pods()
    language.check_containers(self.inject)
    if self.max_workers and (
        self.manifest != manifests.KUBERNETES or not self.workers or
        self.policy().rules['worker'] == restarts.NEVER):
      raise ValueError(
          '`workers` with a range needs --manifest=kubernetes, a MIN of at '
          'least 1, and --restart other than never, as Kubernetes restarts '
          f'such workers. Received: {self.workers}:{self.max_workers} for '
          f'{self.manifest}. Give a fixed number, or change these.')

  def pods(self) -> manifests.Pods:
    """Returns the common settings of a manifest's pods."""
    return manifests.make_pods(self.run_name, self.image, self.policy(),
                               self.grace_secs, self.claim, self.claim_size,
                               self.resources, self.max_workers)

  def _check_places(self) -> None:
    layouts.check_hosts(self.hosts)
    if not self.hosts:
      ports.check_bind(self.bind or ports.LOOPBACK)
    if self.slurm and (self.hosts or self.host):
      raise ValueError('`slurm` and `hosts` exclude each other: each says '
                       'where tasks run. Received: both. Leave one out.')
    is_one = not self.hosts and not self.slurm
    for name, is_of_one in (('bind', True), ('host', False), ('port', False)):
      if getattr(self, name) and is_of_one is not is_one:
        raise ValueError(
            f'`{name}` is only for runs on '
            f'{"one machine" if is_of_one else "several machines"}. Received: '
            f'{getattr(self, name)!r}. Leave it out, or '
            f'{"leave out" if is_of_one else "give"} `hosts` or `slurm`.')
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
      # The program of a manifest is in the image.
      if not self.manifest and shutil.which(command[0]) is None:
        raise ValueError(f'{command[0]}: no such program, or not executable. '
                         'Give its path, or `python program.py`.')
      if not self.manifest and not self.dry_run:
        _check_script(command)

  @property
  def num_workers(self) -> int:
    """The number of workers besides the chief."""
    if self.slurm:
      return slurm_step.num_workers(slurm_step.read(os.environ), self.ps,
                                    self.evaluator, self.workers)
    if self.workers is not None:
      return self.workers
    return len(self.hosts) - 1 if self.hosts else 1

  def layout(self) -> layouts.Layout:
    """Returns the places of the tasks; or raises `ValueError`."""
    if self.join:
      return joins.layout(self.join, self.model_dir)
    layout = self._layout_of_run()
    if self.max_workers is None:
      return layout
    return layout._replace(
        tf_config={membership.MAX_WORKERS: self.max_workers})

  def _layout_of_run(self) -> layouts.Layout:
    if self.slurm:
      return slurm_step.layout(slurm_step.read(os.environ), self.num_workers,
                               self.ps, self.evaluator, self.port)
    if self.hosts:
      return layouts.on_hosts(
          self.hosts, layouts.find_local_host(self.hosts, self.host),
          self.num_workers, self.ps, self.evaluator,
          self.port or layouts.DEFAULT_PORT)
    return layouts.on_this_machine(self.num_workers, self.ps, self.evaluator,
                                   self.bind or ports.LOOPBACK)

  def task_settings(self) -> task_settings.TaskSettings:
    """Returns the settings of some tasks alone."""
    return task_settings.parse(self.commands, self.env, self.cpus)

  def policy(self) -> restarts.RestartPolicy:
    """Returns the restart rules."""
    return restarts.RestartPolicy(
        restarts.parse(self.restart), self.max_restarts,
        self.restart_delay_secs, self.spare,
        is_together=not self.ps and self.num_workers > 0)


def _check_script(command: Sequence[str]) -> None:
  """Raises `ValueError` if the command is Python with a missing script."""
  if not language.is_python(command):
    return
  arguments = [word for word in command[1:] if word not in _PYTHON_FLAGS]
  # After an option with a value the script's position is not known.
  if arguments and not arguments[0].startswith('-') and not os.path.exists(
      arguments[0]):
    raise ValueError(f'{arguments[0]}: no such file. Give the path of the '
                     f'program from {os.getcwd()}.')
