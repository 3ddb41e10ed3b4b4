# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How the tasks of a run are told of their faults: by their environment."""

from __future__ import annotations

import os
import uuid

from tfplugin.faults import language

FAULTS_VARIABLE = 'TFPLUGIN_FAULTS'
# Each fault comes once in a run, however often its task starts again.
RUN_VARIABLE = 'TFPLUGIN_FAULTS_RUN'


def variables(faults: str) -> dict[str, str]:
  """Returns the variables that give a run its faults.

  Args:
    faults: See `language.parse`; empty: none.

  Raises:
    ValueError: the text is not of the language.
  """
  if not faults.strip():
    return {}
  language.parse(faults)
  return {FAULTS_VARIABLE: faults, RUN_VARIABLE: uuid.uuid4().hex}


def check(faults: str, num_workers: int, num_ps: int,
          has_evaluator: bool) -> None:
  """Raises unless each fault can come in a cluster with one chief.

  Args:
    faults: See `language.parse`; empty: none.
    num_workers: How many workers there are besides the chief.
    num_ps: How many parameter servers.
    has_evaluator: Whether there is an evaluator.

  Raises:
    ValueError: the text is not of the language, or names a task that the run
      does not have.
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

  Raises:
    ValueError: the variable's text is not of the language.
  """
  text = os.environ.get(FAULTS_VARIABLE, '')
  faults = language.parse(text) if text.strip() else ()
  return faults, os.environ.get(RUN_VARIABLE, '')
