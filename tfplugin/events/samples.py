# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples of tasks of `tfplugin-train`: loss and figures, twice a second."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from typing import NamedTuple
from typing import Optional

from tfplugin.events import record


class Sample(NamedTuple):
  """One event `sampling`.

  `time` is in seconds since the epoch, `loss` is of the task's last batch, and
  `figures` are the technique's, by name.
  """

  time: float
  step: int
  loss: float
  figures: Mapping[str, float]


def of(events: Iterable[record.Event]) -> dict[str, list[Sample]]:
  """Returns the samples among events, by task."""
  found = {}
  for event in events:
    if event.name == 'sampling':
      figures = {name: _number(value)
                 for name, value in event.details['figures'].items()}
      found.setdefault(event.task, []).append(Sample(
          event.time, event.step, _number(event.details['loss']), figures))
  return found


def figure(samples: Mapping[str, list[Sample]],
           name: str) -> dict[str, list[tuple[Sample, float]]]:
  """Returns the samples that have a figure, and its values, by task."""
  found = {task: [(s, s.figures[name]) for s in lines if name in s.figures]
           for task, lines in samples.items()}
  return {task: pairs for task, pairs in found.items() if pairs}


def _number(value: Optional[float]) -> float:
  """Returns the number, or NaN for None, as JSON has no NaN."""
  return math.nan if value is None else value
