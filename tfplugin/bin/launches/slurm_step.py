# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Places of a run's tasks in a job step of Slurm, one task a process.

TensorFlow's `SlurmClusterResolver` computes the same places where it works. It
fails on machines without GPUs, because it divides by their number. It also
expects Slurm's nodes in the order of their names, but Slurm has n2 before n10.
And it counts an evaluator as a task of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

from tfplugin.bin.launches import layouts

# Jobs on one machine have different ports, a hundred for each of a hundred
# jobs. They are below the range of outgoing connections.
_PORTS = 20000
_PORTS_EACH = 100
# One node, or several: n[1-3,7].
_NODES = re.compile(r'([^,\[\]]+)(?:\[([\d,-]+)\])?(?:,|$)')
_COUNTS = re.compile(r'(\d+)(?:\(x(\d+)\))?(?:,|$)')


class Step(NamedTuple):
  """Slurm's nodes of the processes of a step, and this process's number."""

  nodes: list[str]
  rank: int
  job: int

  @property
  def port(self) -> int:
    """The first port of the run's tasks."""
    return _PORTS + self.job % 100 * _PORTS_EACH


def read(environ: Mapping[str, str]) -> Step:
  """Returns the step that Slurm's variables describe; or raises ValueError."""
  nodes = list(_expand_nodes(_value(environ, 'STEP_NODELIST')))
  counts = list(_expand_counts(_value(environ, 'STEP_TASKS_PER_NODE')))
  rank = int(_value(environ, 'PROCID'))
  placed = [node for node, count in zip(nodes, counts) for _ in range(count)]
  own = environ.get('SLURMD_NODENAME')
  if rank >= len(placed) or own and own != placed[rank]:
    raise ValueError(
        '`slurm` needs tasks that are dealt out node by node. Received: task '
        f'{rank} on {own} of {",".join(nodes)}. Call srun with '
        '--distribution=block.')
  return Step(placed, rank, int(_value(environ, 'JOB_ID')))


def num_workers(step: Step, num_ps: int, has_evaluator: bool,
                workers: int | None = None) -> int:
  """Returns the number of workers: all tasks but the other ones.

  `workers` is the number that the user wants; None: all that are left. Too few
  or too many tasks raise `ValueError`.
  """
  others = 1 + num_ps + has_evaluator
  wanted = others + (workers or 0)
  total = len(step.nodes)
  if total < wanted or workers is not None and total != wanted:
    raise ValueError(
        f'`slurm` needs {wanted} tasks'
        f'{"" if workers is not None else " or more"}: a chief, {num_ps} ps, '
        f'{int(has_evaluator)} evaluator and {workers or 0} workers. Received: '
        f'{total}. Call srun with --ntasks={wanted}.')
  return total - others


def layout(step: Step, workers: int, num_ps: int, has_evaluator: bool,
           port: int | None = None) -> layouts.Layout:
  """Returns the layout, in which this process starts one task.

  Slurm's first processes are the parameter servers. The chief, the workers and
  the evaluator follow. Each task has the next port after `port`; None: the
  first port follows from the number of the job.

  Example:
    >>> step = Step(['n1', 'n1', 'n2'], rank=2, job=7)
    >>> layout(step, 1, 1, False).cluster
    {'ps': ['n1:20700'], 'chief': ['n1:20701'], 'worker': ['n2:20702']}
    >>> layout(step, 1, 1, False).own
    [Task(type='worker', index=0)]
  """
  tasks = layouts.tasks_of(workers, num_ps, has_evaluator)
  own = tasks[step.rank]
  hosts = {task.name: node for task, node in zip(tasks, step.nodes)}
  return layouts.Layout(
      layouts.addresses_at(hosts, tasks, port or step.port), tasks, [own],
      hosts, f'{own.type}-{own.index}')


def _value(environ: Mapping[str, str], name: str) -> str:
  value = environ.get(f'SLURM_{name}')
  if not value:
    raise ValueError(
        '`slurm` needs the variables of a job step of Slurm. Received: no '
        f'SLURM_{name}. Call e.g. `srun --ntasks=4 tfplugin-launch --slurm -- '
        'python program.py`.')
  return value


def _expand_nodes(text: str) -> Iterator[str]:
  for prefix, ranges in _matches(_NODES, 'STEP_NODELIST', text):
    for part in ranges.split(','):
      first, _, last = part.partition('-')
      for number in range(int(first or 0), int(last or first or 0) + 1):
        yield prefix + str(number).zfill(len(first)) if first else prefix


def _expand_counts(text: str) -> Iterator[int]:
  for count, times in _matches(_COUNTS, 'STEP_TASKS_PER_NODE', text):
    yield from [int(count)] * int(times or 1)


def _matches(pattern: re.Pattern, name: str,
             text: str) -> list[tuple[str, str]]:
  if not re.fullmatch(f'(?:{pattern.pattern})*', text):
    raise ValueError(f'SLURM_{name} must be a list as Slurm writes it. '
                     f'Received: {text!r}')
  return pattern.findall(text)
