# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records of events, lines of JSON, also of samples; and how a task ended."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

# The version of the format. Readers skip lines of other versions.
VERSION = 1

BEGIN = 'begin'
END = 'end'
INSTANT = 'instant'
KINDS = (BEGIN, END, INSTANT)

# The names of the events; docs/events.md says what each means.
NAMES = ('starting', 'coming_back', 'waiting', 'training', 'sampling',
         'exchanging', 'dropping', 'saving', 'joined', 'left', 'stopping',
         'injecting', 'stopped', 'dying', 'ended')
# A process writes no event after one of these.
LAST_WORDS = ('stopped', 'dying', 'ended')
STOPPED = 'stopped on request'
CONTINUES = 'the same command continues'
# A detail of the end of a training after which nobody writes `ended`.
ENDS_TASK = 'ends_task'
# The keys that every line has.
_COMMON = ('version', 'time', 'pid', 'task', 'name', 'kind', 'session')


class Event(NamedTuple):
  """Something that a task did.

  Attributes:
    time: Seconds since the epoch, by the clock of the task's machine.
    pid: The process.
    task: The task, e.g. `worker:0`.
    name: One of `NAMES`.
    kind: One of `KINDS`.
    details: Further values, by name.
    session: The number of the run's session: how often the run was started.
  """

  time: float
  pid: int
  task: str
  name: str
  kind: str
  details: Mapping[str, Any]
  session: int = 1

  @property
  def step(self) -> int | None:
    """The global step; None if it is unknown."""
    return self.details.get('step')


def encode(event: Event) -> bytes:
  """Returns the line of `event` with its newline; refuses an unknown name."""
  if event.name not in NAMES or event.kind not in KINDS:
    raise ValueError(f'An event must have one of the names {NAMES} and of the '
                     f'kinds {KINDS}. Received: {event.name!r}, '
                     f'{event.kind!r}. Add the name to `NAMES` and to '
                     'docs/events.md.')
  taken = set(_COMMON) & set(event.details)
  if taken:
    raise ValueError('A detail must not have the name of a field that every '
                     f'event has. Received: {sorted(taken)}. Choose another '
                     'name.')
  common = event._asdict()
  details = common.pop('details')
  fields = {'version': VERSION, **common, **details}
  return json.dumps(fields, default=str).encode() + b'\n'


def decode(line: bytes) -> Event | None:
  """Returns the event of a line; None for another version of the format.

  Raises ValueError if the line is torn or holds no event.
  """
  fields = json.loads(line)
  if not isinstance(fields, dict) or 'version' not in fields:
    raise ValueError('A line must be an object with a `version`. Received: '
                     f'{line[:80]!r}')
  if fields['version'] != VERSION:
    return None
  fields.setdefault('session', 1)  # Old lines have no session.
  try:
    common = {key: fields.pop(key) for key in _COMMON}
  except KeyError as e:
    raise ValueError(f'A line must have {e}. Received: {line[:80]!r}') from e
  common.pop('version')
  return Event(**common, details=fields)


def is_done(event: Event) -> bool:
  """Returns whether a task with this last event has done its work.

  With `EventsHook` alone, that is the end of a training. The task may begin
  another one.
  """
  return event.name == 'ended' or bool(event.details.get(ENDS_TASK))


def is_new_process(before: Event, event: Event) -> bool:
  """Returns whether another process of a task wrote `event`, after `before`.

  In a container each process of a task has the same pid.
  """
  says_so = [each.details.get('what') == 'process' for each in (before, event)]
  if before.pid != event.pid or says_so[1]:
    return True
  # A process that has ended a training may begin another one.
  return ((event.name, event.kind) == ('starting', BEGIN) and
          not says_so[0] and (before.name, before.kind) != ('training', END))


def by_process(events: Iterable[Event]) -> list[list[Event]]:
  """Returns the events of each process of a task, in the order of writing."""
  found = []
  for event in events:
    if not found or is_new_process(found[-1][-1], event):
      found.append([])
    found[-1].append(event)
  return found


def describe_stop(step: int | None, saved_step: int | None) -> str:
  """Returns the message that a training stopped on request.

  `step` is the global step, `saved_step` the step of the last checkpoint; None
  if unknown.

  Example:
    >>> describe_stop(2240, 2239)
    'stopped on request at step 2,240, saved model.ckpt-2239, the same command \
continues'
  """
  text = STOPPED if step is None else f'{STOPPED} at step {step:,}'
  if saved_step is None:
    return text
  return f'{text}, saved model.ckpt-{saved_step}, {CONTINUES}'


def describe_end(event: Event) -> str:
  """Returns how a task ended, given its last event."""
  if is_done(event):
    return 'done'
  if event.name == 'stopped':
    return describe_stop(event.step, event.details.get('saved_step'))
  message = str(event.details.get('message', '')).split('\n')[0]
  return f'failed: {event.details.get("error")}: {message}'


class Sample(NamedTuple):
  """One event `sampling`: loss and figures of `tfplugin-train`, twice a second.

  `time` is in seconds since the epoch, `loss` is of the task's last batch, and
  `figures` are the technique's, by name. `num_steps` and `counts` are of the
  process, so far. `first_time` is of the session's first sample, if it is
  known.
  """

  time: float
  step: int
  loss: float
  figures: Mapping[str, float]
  num_steps: int = 0
  counts: Mapping[str, int] = {}
  first_time: float | None = None


def sample_details(step: int, num_steps: int, loss: float,
                   figures: Mapping[str, float],
                   counts: Mapping[str, int]) -> dict[str, Any]:
  """Returns the details of an event `sampling`."""
  return {'step': int(step), 'num_steps': num_steps, 'loss': finite(loss),
          'figures': {k: finite(v) for k, v in figures.items()},
          'counts': {k: int(v) for k, v in counts.items()}}


def sample_of(event: Event) -> Sample:
  """Returns the sample of an event `sampling`."""
  details = event.details
  figures = {name: _number(value) for name, value in details['figures'].items()}
  return Sample(event.time, event.step, _number(details['loss']), figures,
                details.get('num_steps', 0), details.get('counts', {}))


def samples_of(events: Iterable[Event]) -> dict[str, list[Sample]]:
  """Returns the samples among events, by task."""
  found = {}
  for event in events:
    if event.name == 'sampling':
      found.setdefault(event.task, []).append(sample_of(event))
  return found


def finite(value: float) -> float | None:
  """Returns a number for JSON; None for NaN and infinity."""
  return float(value) if math.isfinite(value) else None


def _number(value: float | None) -> float:
  """Returns the number, or NaN for None, as JSON has no NaN."""
  return math.nan if value is None else value
