# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of some tasks alone: a command, variables, CPUs.

The user gives each as `WHO=WHAT`, where WHO is a task (`worker:1`), a job
(`worker`) or `all`. The setting of a task takes precedence over its job's, and
both over the setting of `all`.
"""

from __future__ import annotations

import collections
import os
import re
import shlex
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from tfplugin.bin.launches import layouts
from tfplugin.distribute import cluster_config
from tfplugin.faults import language

ALL = 'all'
_EXAMPLES = {
    'command': "--command=ps='python ps.py --port=1'",
    'env': '--env=worker=OMP_NUM_THREADS=2',
    'cpus': '--cpus=ps:0=0-1,4',
}
_VARIABLE = re.compile(r'[A-Za-z_]\w*')
_TF_CONFIG = 'TF_CONFIG'


class TaskSettings(NamedTuple):
  """The settings of some tasks, each by task, job or 'all'.

  Example:
    >>> settings = parse(env=['all=A=1', 'worker=A=2'], cpus=['ps=0'])
    >>> settings.variables_of(cluster_config.Task('worker', 0))
    {'A': '2'}
    >>> settings.cpus_of(cluster_config.Task('ps', 0))
    (0,)
  """

  commands: Mapping[str, Sequence[str]]
  variables: Mapping[str, Mapping[str, str]]
  cpus: Mapping[str, Sequence[int]]

  def command_of(self, task: cluster_config.Task) -> Sequence[str] | None:
    """Returns the command of a task alone; None if it has none."""
    return next(_most_special_first(self.commands, task), None)

  def variables_of(self, task: cluster_config.Task) -> dict[str, str]:
    """Returns the environment variables of a task alone."""
    return dict(collections.ChainMap(
        *_most_special_first(self.variables, task)))

  def cpus_of(self, task: cluster_config.Task) -> Sequence[int] | None:
    """Returns the CPUs of a task; None: any."""
    return next(_most_special_first(self.cpus, task), None)

  def check(self, tasks: Iterable[cluster_config.Task]) -> None:
    """Raises `ValueError` if a setting names no task or job of the run."""
    known = {ALL}.union(*({task.name, task.type} for task in tasks))
    for flag, named in zip(_EXAMPLES,
                           (self.commands, self.variables, self.cpus)):
      for who in named:
        if who not in known:
          raise ValueError(
              f'`{flag}` must name tasks or jobs of the run '
              f'({", ".join(sorted(known))}). Received: {who!r}. Name one of '
              'these, or start more tasks.')

  def check_cpus(self, tasks: Iterable[cluster_config.Task]) -> None:
    """Raises `ValueError` unless this process may use the CPUs of its tasks."""
    wanted = [cpus for cpus in map(self.cpus_of, tasks) if cpus is not None]
    if wanted and not hasattr(os, 'sched_getaffinity'):
      raise ValueError('`cpus` must be left out: this system cannot restrict '
                       f'processes to CPUs. Received: {wanted[0]}')
    for cpus in wanted:
      usable = os.sched_getaffinity(0)
      if not usable.issuperset(cpus):
        raise _error('cpus', 'be CPUs that this process may use '
                     f'({", ".join(map(str, sorted(usable)))})', cpus)


def _most_special_first(values: Mapping, task: cluster_config.Task) -> Iterator:
  return (values[who] for who in (task.name, task.type, ALL) if who in values)


def parse(command: Sequence[str] = (), env: Sequence[str] = (),
          cpus: Sequence[str] = ()) -> TaskSettings:
  """Returns the settings in the user's texts.

  A command is e.g. `ps=python ps.py`, with a shell's quotes; a variable e.g.
  `worker:0=NAME=value`; CPUs are e.g. `ps=0-1,4`. A text of another form, or a
  second one for the same task, raises `ValueError`.
  """
  variables: dict[str, dict[str, str]] = {}
  for who, text in _pairs('env', env):
    name, value = _variable(text)
    if name in variables.setdefault(who, {}):
      raise _error('env', 'give each variable of a task once', text)
    variables[who][name] = value
  return TaskSettings(
      {who: _words(text) for who, text in _once('command', command)}, variables,
      {who: _cpu_set(text) for who, text in _once('cpus', cpus)})


def _pairs(flag: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
  for text in texts:
    who, _, what = text.partition('=')
    if not who or not what:
      raise _error(flag, 'name a task or a job, and a value', text)
    yield who, what


def _once(flag: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
  seen = set()
  for who, what in _pairs(flag, texts):
    if who in seen:
      raise _error(flag, f'be given once for {who}', what)
    seen.add(who)
    yield who, what


def _words(text: str) -> tuple[str, ...]:
  try:
    words = tuple(shlex.split(text))
  except ValueError as e:
    raise _error('command', f'have quotes in pairs ({e})', text) from e
  if not words:
    raise _error('command', 'name a program', text)
  return words


def _variable(text: str) -> tuple[str, str]:
  name, equals, value = text.partition('=')
  if not equals or not _VARIABLE.fullmatch(name):
    raise _error('env', 'have the form TASK=NAME=VALUE', text)
  if name == _TF_CONFIG:
    raise _error('env', 'leave TF_CONFIG to the launcher, which writes it',
                 text)
  return name, value


def _cpu_set(text: str) -> tuple[int, ...]:
  found = set()
  for part in text.split(','):
    first, dash, last = part.strip().partition('-')
    last = last if dash else first
    if not (first.isdecimal() and last.isdecimal()) or int(first) > int(last):
      raise _error('cpus', 'be numbers and ranges of CPUs', text)
    found.update(range(int(first), int(last) + 1))
  return tuple(sorted(found))


def _error(flag: str, rule: str, received: object) -> ValueError:
  return ValueError(f'`{flag}` must {rule}. Received: {received!r}. Write e.g. '
                    f'{_EXAMPLES[flag]}')


class Start(NamedTuple):
  """The command of a task, its variables besides TF_CONFIG, and its CPUs."""

  task: cluster_config.Task
  command: Sequence[str]
  variables: Mapping[str, str]
  cpus: Sequence[int] | None


def make_starts(tasks: Sequence[cluster_config.Task], command: Sequence[str],
                settings: TaskSettings, faults: str) -> list[Start]:
  """Returns the start of each task of the run; `command` is the default."""
  settings.check(tasks)
  variables = language.variables(faults)
  starts = [Start(task, settings.command_of(task) or command,
                  {**settings.variables_of(task), **variables},
                  settings.cpus_of(task)) for task in tasks]
  for start in starts:
    if not start.command:
      raise ValueError('`command` must name a program for each task, where '
                       'none follows the flags. Received: none for '
                       f'{start.task.name}. Give one to `all`, or to its job.')
    language.restart_command(start.command, start.task.name, faults)
  return starts


def describe_starts(layout: layouts.Layout,
                    starts: Sequence[Start]) -> Iterator[str]:
  """Yields the lines with which a shell would start the tasks."""
  for start in starts:
    variables = {
        'TF_CONFIG': cluster_config.encode(layout.cluster, start.task,
                                           layout.tf_config),
        **start.variables}
    words = [f'{k}={shlex.quote(v)}' for k, v in variables.items()]
    if start.cpus is not None:
      words.append(f'taskset --cpu-list {",".join(map(str, start.cpus))}')
    host = layout.hosts.get(start.task.name)
    yield f'# {start.task.name}' + (f' on {host}' if host else '')
    yield ' '.join([*words, shlex.join(start.command)])
