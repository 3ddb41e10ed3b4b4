# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Environment variables that give the tasks of a run their faults."""

from __future__ import annotations

import os
import uuid

from tfplugin.events import process
from tfplugin.faults import language

# Each fault occurs once in a run, also if its task restarts.
RUN_VARIABLE = 'TFPLUGIN_FAULTS_RUN'


def variables(faults: str) -> dict[str, str]:
  """Returns the environment variables that give a run its faults.

  Args:
    faults: See `language.parse`; empty: none.

  Raises:
    ValueError: the text is not of the language.
  """
  if not faults.strip():
    return {}
  language.parse(faults)
  return {process.FAULTS_VARIABLE: faults, RUN_VARIABLE: uuid.uuid4().hex}


def check(faults: str, num_workers: int, num_ps: int,
          has_evaluator: bool) -> None:
  """Raises ValueError unless each fault names a task of the run.

  There is one chief, beside `num_workers` workers. `faults` may be empty.
  """
  sizes = {'chief': 1, 'worker': num_workers, 'ps': num_ps,
           'evaluator': int(has_evaluator)}
  tasks = [f'{job}:{i}' for job, size in sizes.items() for i in range(size)]
  for fault in language.parse(faults) if faults.strip() else ():
    if fault.task not in tasks:
      raise ValueError(
          f'A fault must be of a task of the run: {", ".join(tasks)}. '
          f'Received: "{fault}". Name one of these, or start more tasks.')


def read() -> tuple[tuple[language.Fault, ...], str]:
  """Returns the faults of this process's run, and the run's name.

  Raises ValueError if the variable's text is not of the language.
  """
  text = os.environ.get(process.FAULTS_VARIABLE, '')
  faults = language.parse(text) if text.strip() else ()
  return faults, os.environ.get(RUN_VARIABLE, '')
