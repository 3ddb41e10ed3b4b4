# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What each task of `tfplugin-train` told twice a second: loss and figures."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import NamedTuple
from typing import Union


class Sample(NamedTuple):
  """One line of `status/<task>.jsonl`.

  Attributes:
    time: Seconds since the epoch.
    step: The global step.
    loss: Of the task's last batch.
    figures: What the technique tells, by name.
  """

  time: float
  step: int
  loss: float
  figures: Mapping[str, float]


def read_all(run_dir: Union[str, os.PathLike]) -> dict[str, list[Sample]]:
  """Returns the samples of each task; without such files there are none.

  A process that comes back begins its file anew.

  Args:
    run_dir: The directory of the run.
  """
  return {'{0}:{2}'.format(*path.stem.rpartition('-')): _read(path)
          for path in sorted(pathlib.Path(run_dir, 'status').glob('*.jsonl'))}


def figure(samples: Mapping[str, list[Sample]],
           name: str) -> dict[str, list[tuple[Sample, float]]]:
  """Returns the samples that have a figure, and its values, by task."""
  found = {task: [(s, s.figures[name]) for s in lines if name in s.figures]
           for task, lines in samples.items()}
  return {task: pairs for task, pairs in found.items() if pairs}


def _read(path: pathlib.Path) -> list[Sample]:
  samples = []
  # As text: of bytes each line's encoding would be found out anew.
  for line in path.read_text(encoding='utf-8', errors='replace').split('\n'):
    try:
      fields = json.loads(line)
      samples.append(Sample(fields['time'], fields['global_step'],
                            fields['loss'], fields['figures']))
    except (ValueError, KeyError, TypeError):  # Torn, or being written.
      continue
  return samples
