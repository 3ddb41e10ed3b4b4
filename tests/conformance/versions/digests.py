# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What was recorded on TensorFlow 2.15, and how near other numbers are to it.

  testdata/versions/trajectories.json  the trajectories, on 2.15
  testdata/versions/2.21.json          what was measured on that TensorFlow
"""

from __future__ import annotations

import json
import math
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).absolute().parents[3] / 'testdata/versions'
_TRAJECTORIES = FOLDER / 'trajectories.json'
_PARTS = 4

Digest = dict[str, list]


def digest(values: dict[str, np.ndarray]) -> Digest:
  """Returns a few numbers of each array, in which each element has a part.

  Args:
    values: Arrays by name.

  Returns:
    Of each: its type, its largest size, and sums of its parts, weighted so that
    a rounding of the elements is about as large in them.
  """
  return {name: _digest(np.asarray(value)) for name, value in values.items()}


def _digest(value: np.ndarray) -> list:
  flat = value.astype(np.float64).ravel()
  parts = np.array_split(flat * np.cos(np.arange(flat.size)), _PARTS)
  return [value.dtype.name, float(np.abs(flat).max(initial=0.0)), *(
      float(part.sum() / math.sqrt(max(1, part.size))) for part in parts)]


def roundings(recorded: Digest, digested: Digest) -> float:
  """Returns the largest difference of two digests.

  Args:
    recorded: What it should be.
    digested: What it is.

  Returns:
    A multiple of the rounding of the type, at the size of the largest element;
    infinite where names, types or whole numbers differ.
  """
  if set(recorded) != set(digested):
    return math.inf
  return max(_roundings(recorded[name], digested[name]) for name in recorded)


def _roundings(recorded: list, digested: list) -> float:
  (dtype, *then), (dtype_now, *now) = recorded, digested
  if dtype == dtype_now and then == now:
    return 0.0
  if dtype != dtype_now or not dtype.startswith('float'):
    return math.inf
  rounding = float(np.finfo(dtype).eps) * max(then[0], now[0])
  return max(abs(a - b) for a, b in zip(then, now)) / rounding


def read_trajectories() -> dict[str, Digest]:
  """Returns what was recorded."""
  return json.loads(_TRAJECTORIES.read_text(encoding='utf-8'))


def write_trajectories(trajectories: dict[str, Digest]) -> None:
  """Records; a line for each.

  Args:
    trajectories: Digests by name.
  """
  lines = [f'{json.dumps(name)}: {json.dumps(values, sort_keys=True)}'
           for name, values in sorted(trajectories.items())]
  FOLDER.mkdir(exist_ok=True)
  _TRAJECTORIES.write_text('{\n' + ',\n'.join(lines) + '\n}\n',
                           encoding='utf-8')


def read_measured() -> dict[str, dict]:
  """Returns what was measured, by version, the oldest first."""
  return {path.stem: json.loads(path.read_text(encoding='utf-8'))
          for path in sorted(FOLDER.glob('2.*.json'))}


def write_measured(version: str, measured: dict) -> None:
  """Keeps what was measured.

  Args:
    version: The first two numbers of TensorFlow's.
    measured: Versions of what is used, and a figure for each kind.
  """
  (FOLDER / f'{version}.json').write_text(
      json.dumps(measured, indent=2, sort_keys=True) + '\n', encoding='utf-8')
