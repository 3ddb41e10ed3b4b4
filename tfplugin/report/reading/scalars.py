# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scalar summaries of a run's event files."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

# The directory of evaluations; one with a name is `eval_NAME`.
_EVALUATION = 'eval'


class Curve(NamedTuple):
  """A scalar over the steps, in their order; times are since the epoch."""

  steps: list[int]
  times: list[float]
  values: list[float]


def read_tree(run_dir: str | os.PathLike) -> dict[str, dict[str, Curve]]:
  """Reads the scalars of a run's directory and its subdirectories.

  The result has the curves by tag, by the path below `run_dir`; '' is itself.
  """
  root = pathlib.Path(run_dir)
  found = {}
  for path in sorted(root.rglob('events.out.tfevents.*')):
    name = path.parent.relative_to(root).as_posix()
    found.setdefault('' if name == '.' else name, []).append(path)
  return {name: _read(paths) for name, paths in found.items()}


def is_evaluation(directory: str) -> bool:
  """Returns whether an evaluation writes there: `eval`, or `eval_NAME`."""
  return directory.split('_')[0] == _EVALUATION


def task_of(directory: str) -> str | None:
  """Returns the task that writes to a directory of `read_tree`, or None.

  The run's directory, '', is the chief's; `worker-1` belongs to `worker:1`.
  """
  if not directory:
    return 'chief:0'
  job, _, index = directory.partition('-')
  return f'{job}:{index}' if index.isdigit() else None


def by_task(tree: Mapping[str, Mapping[str, Curve]],
            tag: str) -> dict[str, Curve]:
  """Returns the curves of a tag by the task that wrote them."""
  return {task_of(directory): curves[tag] for directory, curves in tree.items()
          if tag in curves and task_of(directory) is not None}


def _read(paths: list[pathlib.Path]) -> dict[str, Curve]:
  """Reads the files of one directory; a later value of a step wins."""
  found = {}
  for path in paths:
    for time, step, tag, value in _scalars(path):
      found.setdefault(tag, {})[step] = (time, value)
  curves = {}
  for tag, points in found.items():
    steps = sorted(points)
    curves[tag] = Curve(steps, [points[s][0] for s in steps],
                        [points[s][1] for s in steps])
  return curves


def _scalars(path: pathlib.Path) -> Iterator[tuple[float, int, str, float]]:
  # Imported here: a run without summaries needs no tensorboard.
  from tensorboard.backend.event_processing import event_file_loader
  from tensorboard.compat.proto import event_pb2
  # It ends at a record that a killed writer cut off.
  for record in event_file_loader.RawEventFileLoader(str(path)).Load():
    event = event_pb2.Event.FromString(record)
    for value in event.summary.value:
      scalar = _scalar(value)
      if scalar is not None:
        yield event.wall_time, event.step, value.tag, scalar


def _scalar(value) -> float | None:
  """Returns the scalar of a summary of TensorFlow 1 or 2; None for others."""
  if value.HasField('simple_value'):
    return value.simple_value
  if (value.metadata.plugin_data.plugin_name == 'scalars' and
      value.HasField('tensor')):
    from tensorboard.util import tensor_util
    return float(tensor_util.make_ndarray(value.tensor))
  return None
