# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plays one cell of the matrix, and checks what must hold after every fault."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import sys
import time

import numpy as np
import tensorflow as tf

from tests.chaos import accounting
from tests.chaos import cells
from tests.chaos import program
from tests.forks import forked_programs
from tests.helpers import environments
from tfplugin import events
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import local_cluster
from tfplugin.checkpoints import model_dir_lock
from tfplugin.faults import language

PROGRAM = pathlib.Path(program.__file__)
_LONGEST_SECS = 600.0

@dataclasses.dataclass(frozen=True)
class Outcome:
  """What a fault did to a run.

  Attributes:
    resume_secs: From the fault until another task that trains made a step;
      None: none did any more.
    back_secs: From the fault until its victim made a step, in a new process if
      there is one; where the victim makes none, until the chief did; None: it
      did not any more.
    lost_steps: How far the global step fell, as the chief saw it.
    stride: How far it rose at most from one step of the chief to the next: a
      save is late by that, and what is lost is seen so much later.
    last_step: That of the last checkpoint; 0 where a NaN came before it.
    error: With what the run ended; empty: well.
  """

  resume_secs: float | None
  back_secs: float | None
  lost_steps: int
  stride: int
  last_step: int
  error: str


def play(cell: cells.Cell, directory: pathlib.Path) -> Outcome:
  """Plays a cell.

  Args:
    cell: The cell.
    directory: An empty directory.

  Raises:
    AssertionError: An invariant does not hold.
  """
  model_dir = directory / 'model'
  error = ''
  said = []
  try:
    with environment():
      launch_lib.launch(_options(cell, directory), said.append)
  except local_cluster.RoleError as e:
    error = str(e)
  outcome = _outcome(cell, directory, error)
  _check_that_it_came(cell, directory)
  _check_what_remains(model_dir)
  saves = 2 if cell.kind == 'damage' else 1
  assert outcome.lost_steps <= saves * program.SAVE_STEPS + 2 * outcome.stride
  if error:
    assert cell.may_lose_the_state and 'NaN' in error, error
  else:
    assert not cell.loses_the_state
    assert cells.STEPS <= outcome.last_step
    check_batches(cell.form, directory)
    _check_weights(cell, model_dir)
  return outcome


def _options(cell: cells.Cell,
             directory: pathlib.Path) -> launch_options.LaunchOptions:
  return launch_options.LaunchOptions(
      command=(sys.executable, str(PROGRAM), cell.form, str(directory),
               str(cells.STEPS), '2'),
      logs_dir=str(directory / 'logs'), model_dir=str(directory / 'model'),
      workers=1, ps=cell.num_ps, evaluator=cell.role == 'evaluator',
      # By default an exception of the program, as for a NaN, is permanent.
      restart='always' if cell.kind in ('raise', 'nan') and (
          not cell.may_lose_the_state) else 'on_failure',
      max_restarts=2, restart_delay_secs=0.1,
      inject=cell.fault.replace(
          cells.OTHER_PYTHON, str(environments.other_python())))


@contextlib.contextmanager
def environment():
  """Lets the processes of a run find the tests, each with its own packages."""
  before = os.environ.get('PYTHONPATH')
  os.environ['PYTHONPATH'] = os.pathsep.join(
      path for path in filter(None, sys.path)
      if not path.startswith((sys.prefix, sys.base_prefix)) and
      not path.endswith('site-packages'))
  try:
    yield
  finally:
    if before is None:
      del os.environ['PYTHONPATH']
    else:
      os.environ['PYTHONPATH'] = before


def _outcome(cell: cells.Cell, directory: pathlib.Path,
             error: str) -> Outcome:
  told = events.read_run(directory / 'model').events
  fault = max((e for e in told if e.name == 'injecting'), key=lambda e: e.time)
  steps = steps_of(directory)
  victim = f'{cell.role}-0'
  after = {task: [made for made in of_task if made[0] > fault.time]
           for task, of_task in steps.items()}
  others = [made for task, of_task in after.items() if task != victim
            for made in of_task]
  trains = cell.role in language.TRAINING_JOBS
  back = after.get(victim if trains else 'chief-0', [])
  new = [made for made in back if made[1] != fault.pid]
  return Outcome(
      _time_of_first(others, fault), _time_of_first(new or back, fault),
      fall(steps['chief-0']), _stride(steps['chief-0']),
      last_step(directory), error)


def steps_of(directory: pathlib.Path) -> dict[str, list]:
  """Returns the steps that each task told of: time, process and global step.

  Args:
    directory: Where the program of a run was told to write.
  """
  return {task: [note[:3] for note in told if (
      note.kind in (accounting.ENDED, accounting.DROPPED))]
          for task, told in accounting.read(directory).items()}


def _time_of_first(steps: list, fault: events.Event) -> float | None:
  return min((time - fault.time for time, _, _ in steps), default=None)


def fall(steps: list) -> int:
  """Returns how far the step that one task saw has fallen at most.

  Args:
    steps: Of `steps_of`.
  """
  highest = deepest = 0
  for _, _, step in steps:
    highest = max(highest, step)
    deepest = max(deepest, highest - step)
  return deepest


def _stride(steps: list) -> int:
  return max([after[2] - before[2]
              for before, after in zip(steps, steps[1:])], default=0)


def last_step(directory: pathlib.Path) -> int:
  """Returns the step of the newest checkpoint of a run; 0 without one.

  Args:
    directory: As for `steps_of`.
  """
  return int(_newest(directory / 'model').get('global_step', 0))


def _newest(model_dir: pathlib.Path) -> dict[str, np.ndarray]:
  if tf.train.latest_checkpoint(str(model_dir)) is None:
    return {}
  checkpoint = tf.train.load_checkpoint(str(model_dir))
  return {name: checkpoint.get_tensor(name)
          for name in checkpoint.get_variable_to_shape_map()}


def _check_that_it_came(cell: cells.Cell, directory: pathlib.Path) -> None:
  """A victim that is to end has been started again; none was spared."""
  summary = json.loads((directory / 'logs' / 'summary.json').read_text())
  restarts = {task['task']: task['restarts'] for task in summary['tasks']}
  if cell.killed:
    assert restarts[f'{cell.killed}:0'], summary
  if cell.kind == 'upgrade' and cell.killed:
    assert len({event.details['versions']['tensorflow']
                for event in events.read_run(directory / 'model').events
                if event.task == f'{cell.role}:0' and
                'versions' in event.details}) == 2
  refused = [event.details['message'] for event in events.read_run(
      directory / 'model').events if event.name == 'dying' and
             event.details['message'].startswith('A fault of the network')]
  assert not refused, refused
  for task in restarts:  # Also after the host's clock has moved.
    times = [event.time for event in events.read_file(
        directory / 'model' / 'events' / f'{task.replace(":", "-")}.jsonl'
        ).events]
    assert all(-1.0 < after - before < _LONGEST_SECS
               for before, after in zip(times, times[1:])), (task, times)


def _check_what_remains(model_dir: pathlib.Path) -> None:
  """No process, temporary file or lock; a whole and finite checkpoint."""
  while not os.access(model_dir, os.W_OK):  # A fault that lasts still.
    time.sleep(0.05)
  assert not forked_programs.left()
  assert not list(model_dir.glob('*temp*'))
  with model_dir_lock.locked(str(model_dir), 'a test'):
    pass
  assert all(np.isfinite(value).all() for value in _newest(model_dir).values())


def check_batches(form: str, directory: pathlib.Path) -> None:
  """Checks that every batch is applied, dropped, or of a step without an end.

  A step of shards has a batch of each task. A chief that comes back after a NaN
  sets the servers back to the newest checkpoint.

  Args:
    form: One of `cells.FORMS`.
    directory: As for `steps_of`.
  """
  told = events.read_run(directory / 'model').events
  notes = accounting.read(directory)
  restarts = [event.time for event in told
              if event.details.get('what') == 'process' and (
                  event.task == ('ps:0' if cells.FORMS[form] else 'chief:0') or
                  event.task == 'chief:0' and accounting.is_set_back(
                      notes, event.time))]
  final = sum(int(value) for name, value in _newest(directory / 'model').items()
              if name == 'global_step' or 'stale_counter' in name)
  for together in [notes] if cells.FORMS[form] else [
      {task: of_task} for task, of_task in notes.items()]:
    accounting.check(together, restarts, final)


def _check_weights(cell: cells.Cell, model_dir: pathlib.Path) -> None:
  """From 0 on each step takes 5 % of the way to 3, over 2 after 22 steps.

  One that began anew, or with a save of long before, would not get so far. A
  gradient that a worker took while the weights were 0, and that arrives last,
  adds 5 % of 3. A vector of four 2 has the largest norm that clipping allows:
  from then on it is that, or what the other worker adds and is about to clip.
  """
  values = _newest(model_dir)
  weights = np.stack([values['weight_0'], values['weight_1']])
  least, most = 2.0, program.TARGET * (1 + program.RATE)
  if 'lip' in cell.form:
    least = program.MAX_NORM / 2 * (1 - 1e-5)
    most = program.MAX_NORM / 2 + program.TARGET * program.RATE
  assert ((weights > least) & (weights <= most)).all(), weights
