# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples of tasks of `tfplugin-train`: loss and figures, twice a second."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple
from typing import Optional

from tfplugin.events import record


class Sample(NamedTuple):
  """One event `sampling`.

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
  first_time: Optional[float] = None


def details(step: int, num_steps: int, loss: float,
            figures: Mapping[str, float],
            counts: Mapping[str, int]) -> dict[str, Any]:
  """Returns the details of an event `sampling`."""
  return {'step': int(step), 'num_steps': num_steps, 'loss': _for_json(loss),
          'figures': {k: _for_json(v) for k, v in figures.items()},
          'counts': {k: int(v) for k, v in counts.items()}}


def of_event(event: record.Event) -> Sample:
  """Returns the sample of an event `sampling`."""
  told = event.details
  figures = {name: _number(value) for name, value in told['figures'].items()}
  return Sample(event.time, event.step, _number(told['loss']), figures,
                told.get('num_steps', 0), told.get('counts', {}))


def of(events: Iterable[record.Event]) -> dict[str, list[Sample]]:
  """Returns the samples among events, by task."""
  found = {}
  for event in events:
    if event.name == 'sampling':
      found.setdefault(event.task, []).append(of_event(event))
  return found


def _for_json(value: float) -> Optional[float]:
  """Returns a number for JSON; None for NaN and infinity."""
  return float(value) if math.isfinite(value) else None


def _number(value: Optional[float]) -> float:
  """Returns the number, or NaN for None, as JSON has no NaN."""
  return math.nan if value is None else value
