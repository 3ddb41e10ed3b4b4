# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command, variables and CPUs of each task of a launch."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

from tfplugin.bin.launches import layouts
from tfplugin.bin.launches import task_settings
from tfplugin.distribute import cluster_config
from tfplugin.faults import environment


class Start(NamedTuple):
  """The command, variables and CPUs of a task.

  Attributes:
    variables: Of its environment, besides TF_CONFIG.
    cpus: None: any CPU.
  """

  task: cluster_config.Task
  command: Sequence[str]
  variables: Mapping[str, str]
  cpus: Optional[Sequence[int]]


def make(tasks: Sequence[cluster_config.Task], command: Sequence[str],
         settings: task_settings.TaskSettings, faults: str) -> list[Start]:
  """Returns the command, variables and CPUs of each task of the run.

  `command` is for tasks without a command in `settings`; `faults` are for
  `environment.variables`. Settings of an unknown task, or a task without a
  command, raise `ValueError`.
  """
  settings.check(tasks)
  variables = environment.variables(faults)
  starts = [Start(task, settings.command_of(task) or command,
                  {**settings.variables_of(task), **variables},
                  settings.cpus_of(task)) for task in tasks]
  for start in starts:
    if not start.command:
      raise ValueError('`command` must name a program for each task, where '
                       'none follows the flags. Received: none for '
                       f'{start.task.name}. Give one to `all`, or to its job.')
  return starts


def describe(layout: layouts.Layout, starts: Sequence[Start]) -> Iterator[str]:
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
