# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Number and cluster of a worker that joins the run of another launch.

A parameter server of the run publishes the cluster. Its record gives the worker
a number that no other worker has.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping

from absl import flags

from tfplugin.bin.launches import layouts
from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config
from tfplugin.distribute.sessions import membership
from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.hooks.shutdown import chief_report
from tfplugin.hooks.shutdown import task_tables

_POLL_SECS = 0.2
_REACH_SECS = 5.0
# Launches that begin at the same time want the same number.
_ATTEMPTS = 100
_EXAMPLE = '--join=10.0.0.7:22000'


class RangeParser(flags.ArgumentParser):
  """Parser of `N`, or of `MIN:MAX`; returns (N, None) or (MIN, MAX)."""

  def parse(self, argument: str) -> tuple[int, int | None]:
    """Returns the pair; raises ValueError for another form."""
    words = str(argument).split(':')
    if len(words) > 2 or not all(word.isdecimal() for word in words):
      raise ValueError('must be a number, such as 2, or a range, such as 1:8')
    least, most = int(words[0]), int(words[-1])
    if most < max(least, len(words) - 1):
      raise ValueError('MAX must be at least MIN, and at least 1')
    return least, most if len(words) > 1 else None

  def flag_type(self) -> str:
    """Returns the key of the form in the help."""
    return 'range'


def check_address(address: str) -> None:
  """Raises `ValueError` unless `address` has the form host:port."""
  if not cluster_config.is_address(address):
    raise ValueError('`join` must be the address of a parameter server of the '
                     f'run. Received: {address!r}. Write e.g. {_EXAMPLE}; the '
                     'run shows it as it starts.')


def layout(address: str, model_dir: str | None = None) -> layouts.Layout:
  """Returns the layout of one worker that joins the run at `address`, of a ps.

  `RunFinishedError` is raised if the run says that it has finished, or nothing
  answers and its `model_dir` says so. `RuntimeError` is raised if nothing
  answers, or the run is full.
  """
  try:
    own_host = _own_host(address)
  except RuntimeError:
    if model_dir and chief_report.is_written(model_dir):
      raise chief_report.RunFinishedError(chief_report.OVER) from None
    raise
  described = _description(address)
  cluster, limit = described['cluster'], described[membership.MAX_WORKERS]
  _take_over(described.get(membership.VARIABLES, {}))
  index = _allot(cluster, limit, model_dir)
  task = cluster_config.Task('worker', index)
  others = cluster_config.tasks_of(cluster, evaluator=False)
  own = {task.index: f'{own_host}:{ports.pick_free(1)[0]}'}
  # The clusters of the other tasks do not change: it names those alone that
  # this worker has to reach.
  seen = {job: addresses for job, addresses in cluster.items()
          if job in ('ps', 'chief')}
  if 'chief' not in cluster:
    own[0] = cluster['worker'][0]
  return layouts.Layout(
      {**seen, 'worker': own}, [*others, task], [task], who=f'worker-{index}',
      tf_config={membership.MAX_WORKERS: limit, membership.JOINS: True})


def _own_host(address: str) -> str:
  """Returns the address of this machine at which the run can reach it."""
  host, _, port = address.rpartition(':')
  deadline = time.monotonic() + chief_report.AWAY_SECS
  while True:
    try:
      with socket.create_connection((host.strip('[]'), int(port)),
                                    _REACH_SECS) as connection:
        return connection.getsockname()[0]
    except OSError as e:
      if time.monotonic() > deadline:
        raise RuntimeError(
            f'Nothing answers at --join={address} ({e.strerror or e}). The run '
            'has finished, or its parameter server has not started. Join when '
            f'the run has shown the address, e.g. {_EXAMPLE}.') from e
    time.sleep(_POLL_SECS)


def _description(address: str) -> dict:
  board = task_tables.Board(address)
  deadline = time.monotonic() + _REACH_SECS
  try:
    # The server answers a moment before it publishes the cluster.
    while not (text := board.description()) and time.monotonic() < deadline:
      time.sleep(_POLL_SECS)
  finally:
    board.close()
  if not text:
    raise RuntimeError(
        f'The run at --join={address} must be one that workers may join. '
        f'Received: {"no answer" if text is None else "a fixed cluster"}. '
        'Start the run with --workers=MIN:MAX, e.g. --workers=1:8, and give '
        'the address of a parameter server.')
  return json.loads(text)


def _take_over(variables: Mapping[str, str]) -> None:
  """Gives this launch, and so its worker, the session and clock of the run."""
  # Anybody may have answered: no other variables.
  os.environ.update({
      name: str(variables[name])
      for name in (event_log.SESSION_VARIABLE, clock.VARIABLE)
      if name in variables})


def _allot(cluster: Mapping[str, list[str]], limit: int,
           model_dir: str | None) -> int:
  """Returns a number for a worker, which no other one has or had.

  A parameter server that has just restarted does not know all numbers. The
  events in `model_dir` name the workers, too.
  """
  known = event_files.tasks_in(model_dir) if model_dir else []
  first, *others = [task.name for task in
                    cluster_config.tasks_of(cluster, evaluator=False)
                    if task.type != 'ps']
  board = task_tables.Board(cluster['ps'][0])
  try:
    for _ in range(_ATTEMPTS):
      marks = board.read()
      if marks is None:
        break
      if task_tables.state_of(marks.get(first, 0)) == task_tables.FINISHED:
        raise chief_report.RunFinishedError(chief_report.OVER)
      index = 1 + max(map(_index, (first, *others, *marks, *known)))
      # Workers of the cluster that have not started yet have a place, too.
      expected = sum(not marks.get(name) for name in others)
      if board.claim(f'worker:{index}', limit - expected):
        return index
      present = [name for name, mark in (board.read() or {}).items()
                 if task_tables.state_of(mark) <= task_tables.PRESENT]
      if len(present) + expected >= limit:
        raise RuntimeError(
            f'The run takes at most {limit} workers at the same time, besides '
            f'the chief. Received: one more than {", ".join(sorted(present))}. '
            'Wait until one leaves, or start the run with a larger MAX in '
            '--workers=MIN:MAX.')
  finally:
    board.close()
  raise RuntimeError(f'The parameter server at {cluster["ps"][0]} must answer. '
                     'Received: no answer. See its log.')


def _index(name: str) -> int:
  job, _, index = name.partition(':')
  return int(index) if job == 'worker' else -1
