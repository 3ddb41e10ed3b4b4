# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Language of faults, such as 'kill worker:0 at step 120'.

    faults  = fault { ";" fault }
    fault   = kind task { amount } phase
    kind    = "kill" | "terminate" | "stop" | "cut" | "fill"
            | "raise" | "slow" | "nan" | "damage"
            | "partition" | "slow_link" | "lossy_link" | "clock" | "readonly"
            | "slow_save" | "new_address" | "upgrade"
    task    = job ":" number
    amount  = ( "for" | "by" ) number "s" | "to" number "kB/s" | "of" number "%"
            | "to" path
    phase   = "before the first step" | "at step" number | "at the end"
            | ( "while saving" | "while exchanging" ) [ "after step" number ]

docs/faults.md explains each. Two environment variables give the tasks of a run
their faults.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import uuid
from collections.abc import Sequence

from tfplugin.events import process

START = 'before the first step'
STEP = 'at step'
SAVING = 'while saving'
EXCHANGING = 'while exchanging'
END = 'at the end'
AFTER = 'after step'
PHASES = (START, STEP, SAVING, EXCHANGING, END)
JOBS = ('chief', 'worker', 'ps', 'evaluator')
# The jobs that train and count steps; the chief injects for the others.
TRAINING_JOBS = ('chief', 'worker')
# Each fault occurs once in a run, also if its task restarts.
RUN_VARIABLE = 'TFPLUGIN_FAULTS_RUN'


@dataclasses.dataclass(frozen=True)
class Amount:
  """An amount in a fault, such as "for 5 s".

  `field` is its attribute of a fault. An amount without a unit is a text.
  """

  word: str
  unit: str
  meaning: str
  field: str = 'secs'
  pattern: str = r'\d+(\.\d+)?'
  example: float | str = 5

  def format(self, value: float | str) -> str:
    """Returns the text of the amount."""
    return f'{self.word} {value:g} {self.unit}' if self.unit else (
        f'{self.word} {value}')

  def take(self, words: _Words) -> float | str:
    """Returns the value of the amount that comes next."""
    words.take(f'"{self.word}" and {self.meaning}, as '
               f'"{self.format(self.example)}"', self.word)
    if not self.unit:
      return words.take(self.meaning, self.pattern)
    value = float(words.take(f'a number of {self.meaning}', self.pattern))
    words.take(f'"{self.unit}"', re.escape(self.unit))
    return value


_FOR = Amount('for', 's', 'seconds')
_BY = Amount('by', 's', 'seconds')
_BY_SIGNED = Amount('by', 's', 'seconds', pattern=r'-?\d+(\.\d+)?')
_TO = Amount('to', 'kB/s', 'kilobytes per second', 'strength')
_OF = Amount('of', '%', 'percent', 'strength')
_TO_PYTHON = Amount('to', '', 'the path of a Python', 'python', r'\S+',
                    'new/bin/python')


@dataclasses.dataclass(frozen=True)
class Kind:
  """The rules for one kind of fault.

  `amounts` follow the task in a fault. `is_signal` is whether it acts from
  outside the process, and so on a task without steps.
  """

  phases: tuple[str, ...] = PHASES
  amounts: tuple[Amount, ...] = ()
  is_signal: bool = False
  jobs: tuple[str, ...] = TRAINING_JOBS


# A thread cannot raise in another thread: not in the middle of a step.
_BETWEEN_STEPS = (START, STEP, END)
KINDS = {
    'kill': Kind(is_signal=True, jobs=JOBS),
    'terminate': Kind(is_signal=True, jobs=JOBS),
    'stop': Kind(amounts=(_FOR,), is_signal=True, jobs=JOBS),
    'cut': Kind(amounts=(_FOR,), is_signal=True, jobs=JOBS),
    'fill': Kind(amounts=(_FOR,), is_signal=True, jobs=JOBS),
    'raise': Kind((*_BETWEEN_STEPS, SAVING)),
    'slow': Kind((START, STEP), amounts=(_BY,)),
    'nan': Kind(_BETWEEN_STEPS),
    # Only the chief saves.
    'damage': Kind(_BETWEEN_STEPS, jobs=('chief',)),
    'partition': Kind(amounts=(_FOR,), is_signal=True, jobs=JOBS),
    'slow_link': Kind(amounts=(_TO, _FOR), is_signal=True, jobs=JOBS),
    'lossy_link': Kind(amounts=(_OF, _FOR), is_signal=True, jobs=JOBS),
    'clock': Kind((START, STEP), amounts=(_BY_SIGNED,)),
    # Only the chief writes to the model_dir.
    'readonly': Kind(amounts=(_FOR,), jobs=('chief',)),
    'slow_save': Kind((START, STEP, SAVING), amounts=(_BY,), jobs=('chief',)),
    # The others connect to a parameter server by its name.
    'new_address': Kind(is_signal=True, jobs=('ps',)),
    'upgrade': Kind(amounts=(_TO_PYTHON,), is_signal=True, jobs=JOBS),
}
# They end the process of their task.
ENDINGS = ('kill', 'terminate', 'new_address', 'upgrade')
# Why a task in a container of its own cannot cause them.
_NOT_IN_CONTAINERS = {
    **dict.fromkeys(('kill', 'stop'), 'Linux keeps the first process of a '
                    'container from killing or stopping itself'),
    **dict.fromkeys(('new_address', 'upgrade'),
                    'it needs the launcher, which does not run there'),
    **dict.fromkeys(('partition', 'slow_link', 'lossy_link'),
                    'it needs both ends of a connection on one machine')}
# They last for some seconds; the task that causes them ends them.
OUTAGES = ('cut', 'fill', 'partition', 'slow_link', 'lossy_link')


@dataclasses.dataclass(frozen=True)
class Fault:
  """One fault.

  Attributes:
    kind: One of `KINDS`.
    task: The task that it acts on, e.g. `worker:0`.
    phase: One of `PHASES`.
    step: With `STEP`: the global step at which it occurs. With `SAVING` and
      `EXCHANGING`: the step after which it may occur, or None.
    secs: Its duration in seconds, where the kind has one.
    strength: Its kB/s or percent, where the kind has them.
    python: The path of a Python, where the kind has one.
  """

  kind: str
  task: str
  phase: str
  step: int | None = None
  secs: float | None = None
  strength: float | None = None
  python: str | None = None

  def __str__(self) -> str:
    parts = [self.kind, self.task]
    for amount in KINDS[self.kind].amounts:
      parts.append(amount.format(getattr(self, amount.field)))
    parts.append(self.phase)
    if self.step is not None:
      parts.append(f'{self.step}' if self.phase == STEP else
                   f'{AFTER} {self.step}')
    return ' '.join(parts)


def parse(text: str) -> tuple[Fault, ...]:
  """Parses the text of faults.

  Args:
    text: See the module.

  Returns:
    The faults, in the order of the text.

  Raises:
    ValueError: the text is not of the language; the message shows the place.

  Example:
    >>> from tfplugin.testing import faults
    >>> fault, = faults.parse('stop worker:1 for 2.5 s at step 120')
    >>> fault.kind, fault.task, fault.secs, fault.phase, fault.step
    ('stop', 'worker:1', 2.5, 'at step', 120)
  """
  faults, start = [], 0
  for part in text.split(';'):
    faults.append(_parse_fault(_Words(text, start, start + len(part))))
    start += len(part) + 1
  return tuple(faults)


class _Words:
  """The words of one fault, taken one by one."""

  def __init__(self, text: str, start: int, end: int):
    self._text = text
    self._found = list(re.compile(r'\S+').finditer(text, start, end))
    self._end = end
    self._next = 0

  def take(self, what: str, pattern: str) -> str:
    """Returns the next word, which must match `pattern`."""
    if self._next < len(self._found):
      word = self._found[self._next].group()
      if re.fullmatch(pattern, word):
        self._next += 1
        return word
    raise self.error(what)

  def take_phase(self, phases: tuple[str, ...]) -> str:
    """Returns the phase that comes next."""
    for phase in phases:
      if self.has(phase):
        return phase
    raise self.error(', '.join(f'"{phase}"' for phase in phases))

  def has(self, phrase: str) -> bool:
    """Consumes the words of `phrase` if they come next; returns whether."""
    words = phrase.split()
    following = self._found[self._next:self._next + len(words)]
    is_next = [match.group() for match in following] == words
    self._next += len(words) * is_next
    return is_next

  def check_end(self) -> None:
    """Raises if words are left."""
    if self._next < len(self._found):
      raise self.error('";" or the end')

  def error(self, what: str, back: int = 0) -> ValueError:
    """Returns the error that `what` was expected `back` words ago, or next."""
    index = self._next - back
    place = (self._found[index].start() if index < len(self._found) else
             self._found[-1].end() + 1 if self._found else self._end)
    return ValueError(
        'A fault must be like "kill worker:0 at step 120". Received:\n  '
        f'{self._text}\n  {" " * place}^ expected {what}')


def _parse_fault(words: _Words) -> Fault:
  kind = words.take(_listed(KINDS), '|'.join(KINDS))
  task = words.take(f'a task: one of {_listed(JOBS)}, ":" and its number',
                    rf'({"|".join(JOBS)}):\d+')
  rules = KINDS[kind]
  if task.partition(':')[0] not in rules.jobs:
    raise words.error(
        f'a task that can have {kind!r}: {" or ".join(rules.jobs)}', back=1)
  values = {amount.field: amount.take(words) for amount in rules.amounts}
  phase = words.take_phase(rules.phases)
  step = None
  if phase == STEP or phase in (SAVING, EXCHANGING) and words.has(AFTER):
    step = int(words.take('a number', r'\d+'))
  words.check_end()
  return Fault(kind, task, phase, step, **values)


def _listed(names) -> str:
  *most, last = names
  return f'{", ".join(most)} or {last}'


def variables(faults: str) -> dict[str, str]:
  """Returns the environment variables that give a run its faults.

  Args:
    faults: See `parse`; empty: none.

  Raises:
    ValueError: the text is not of the language.
  """
  if not faults.strip():
    return {}
  parse(faults)
  return {process.FAULTS_VARIABLE: faults, RUN_VARIABLE: uuid.uuid4().hex}


def check_tasks(faults: str, num_workers: int, num_ps: int,
          has_evaluator: bool) -> None:
  """Raises ValueError unless each fault, if any, names a task of the run."""
  sizes = {'chief': 1, 'worker': num_workers, 'ps': num_ps,
           'evaluator': int(has_evaluator)}
  tasks = [f'{job}:{i}' for job, size in sizes.items() for i in range(size)]
  for fault in parse(faults) if faults.strip() else ():
    if fault.task not in tasks:
      raise ValueError(
          f'A fault must be of a task of the run: {", ".join(tasks)}. '
          f'Received: "{fault}". Name one of these, or start more tasks.')


def check_containers(faults: str) -> None:
  """Raises ValueError unless each fault can occur in a task's own container."""
  for fault in parse(faults) if faults.strip() else ():
    why = _NOT_IN_CONTAINERS.get(fault.kind)
    if fault.task.partition(':')[0] not in TRAINING_JOBS:
      why = 'the chief would cause it, from another container'
    if why:
      raise ValueError(
          f'`inject` with `manifest` cannot cause "{fault}": {why}. Choose '
          'raise, terminate, cut or fill, of a task that trains; or end the '
          'container from outside, by `kubectl delete pod` or `docker kill`.')


def restart_command(command: Sequence[str], task: str,
                    faults: str) -> list[str]:
  """Returns the command of a task's restarts; a fault `upgrade` changes it."""
  for fault in parse(faults) if faults.strip() else ():
    if fault.kind != 'upgrade' or fault.task != task:
      continue
    if not is_python(command):
      raise ValueError(
          'A fault `upgrade` must be of a task whose command begins with a '
          f'Python. Received: {command[0]}, for {task}. Start the program by '
          '`python program.py`.')
    if shutil.which(fault.python) is None:
      raise ValueError(f'"{fault}": no such program: {fault.python}. Give the '
                       'path of another Python that has TensorFlow.')
    return [fault.python, *command[1:]]
  return list(command)


def is_python(command: Sequence[str]) -> bool:
  """Returns whether a command runs a program of Python."""
  return bool(re.fullmatch(r'python[\d.]*', os.path.basename(command[0])))


def read_environment() -> tuple[tuple[Fault, ...], str]:
  """Returns the faults of this process's run, and the run's name."""
  text = os.environ.get(process.FAULTS_VARIABLE, '')
  faults = parse(text) if text.strip() else ()
  return faults, os.environ.get(RUN_VARIABLE, '')
