# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums of the batches that tasks took and of those that servers counted.

A task notes each batch before its step and after it. A batch whose step has
ended is applied, or dropped by the rule. One whose step has not, as its task
was killed or its session failed, is either, or lost with that task:

    ended <= what the servers counted <= begun

A drop that only the task counts is noted as such, and is none of these.

The servers count from what they had when they began, anew after each restore.
A count that was lost with a server has been seen by the tasks before: all but
the last batch of each.
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

SESSION, BEGUN, ENDED, DROPPED = 'session', 'begun', 'ended', 'dropped'


class Note(NamedTuple):
  """A line of the program of a run.

  Attributes:
    time: When it was written.
    pid: The process.
    step: The global step; None before a step.
    kind: A session begins, or a batch is taken, or its step has ended, perhaps
      with a drop that no server counts.
    counted: What the servers have counted: the step, and dropped gradients.
  """

  time: float
  pid: int
  step: int | None
  kind: str
  counted: int


def read(directory: pathlib.Path) -> dict[str, list[Note]]:
  """Returns the notes of each task in the directory of a run."""
  return {path.stem: [Note(*json.loads(line)) for line in path.open()]
          for path in directory.glob('*.steps')}


def check(notes: Mapping[str, Sequence[Note]], restarts: Sequence[float],
          final: int) -> None:
  """Checks the sums between restores.

  Args:
    notes: Of the tasks that the servers count together.
    restarts: When who holds the count restarted, or was set back.
    final: What is counted in the last checkpoint.

  Raises:
    AssertionError: They do not agree.
  """
  spans = _spans(notes, restarts)
  for number, span in enumerate(spans, 1):
    # The first that reads it does so before anyone has begun.
    first = min(note.counted for note in _all(span, SESSION))
    ended = len(_all(span, ENDED))
    begun = len(_all(span, BEGUN)) - len(_all(span, DROPPED))
    counted, unseen = final, 0
    if number < len(spans):
      counted = max(note.counted for note in _all(span, SESSION, ENDED))
      unseen = len(span)
    assert ended - unseen <= counted - first <= begun, (
        f'Span {number} of {len(spans)}: {ended} steps ended and {begun} began,'
        f' but {counted - first} are counted, from {first} to {counted}')
  for task, told in notes.items():
    sessions, begun, ended = (sum(note.kind in kinds for note in told)
                              for kinds in ((SESSION,), (BEGUN,),
                                            (ENDED, DROPPED)))
    assert 0 <= begun - ended < max(sessions, 1), (
        f'{task}: {begun} steps began and {ended} ended in {sessions} sessions,'
        ' the last of which ended well')


def is_set_back(notes: Mapping[str, Sequence[Note]], time: float) -> bool:
  """Returns whether the chief, which came back then, restored a lower count."""
  first = next((note.counted for note in notes.get('chief-0', ())
                if note.kind == SESSION and note.time >= time), math.inf)
  return any(note.counted > first for told in notes.values() for note in told
             if note.time < time)


def _spans(notes: Mapping[str, Sequence[Note]],
           restarts: Sequence[float]) -> list[dict[str, list[Note]]]:
  """Returns the notes from each restore to the next."""
  times = [-math.inf, *sorted(restarts), math.inf]
  spans = [{task: [note for note in told if since < note.time <= until]
            for task, told in notes.items()}
           for since, until in zip(times, times[1:])]
  return [span for span in spans if _all(span, SESSION)]


def _all(span: Mapping[str, Sequence[Note]], *kinds: str) -> list[Note]:
  return [note for told in span.values() for note in told if note.kind in kinds]
