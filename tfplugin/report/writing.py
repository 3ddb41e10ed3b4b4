# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writer of the report of a run: numbers, trace and page."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
from typing import Optional
from typing import Union

from tfplugin.report import contents
from tfplugin.report import pictures
from tfplugin.report import trace
from tfplugin.report.reading import run_data

PathLike = Union[str, os.PathLike]

JSON = 'report.json'
TRACE = 'trace.json'
PAGE = 'report.html'


def write(run_dir: PathLike,
          output_dir: Optional[PathLike] = None,
          png: bool = False) -> dict[str, pathlib.Path]:
  """Writes the report of a run, which may still be running.

  Args:
    run_dir: The `model_dir` of the run, with its events.
    output_dir: The directory of the files; None: `run_dir/report`.
    png: Whether to write a picture of each panel, such as `timeline.png`, too.
      It is taken by Chromium or Chrome, which must be installed.

  Returns:
    The files by their names: `report.json`, `trace.json`, `report.html`.

  Raises:
    RuntimeError: plotly is not installed (all files but the page are written),
      or there is no browser for the pictures (all other files are written).
    ValueError: the run has no events.

  Example:
    >>> import tempfile
    >>> from tfplugin import events
    >>> from tfplugin.report import writing
    >>> run_dir = tempfile.mkdtemp()
    >>> events.EventLog(run_dir, 'chief:0').write('starting', 'begin')
    >>> sorted(writing.write_numbers(run_dir))
    ['report.json', 'trace.json']
  """
  files = write_numbers(run_dir, output_dir)
  if importlib.util.find_spec('plotly') is None:
    raise RuntimeError(
        f'{PAGE} needs plotly, which is not installed. '
        f'{files[JSON]} and {files[TRACE]} are written. Install it with: '
        "python -m pip install 'tfplugin[report]'")
  # Imported here: plotly is an extra.
  from tfplugin.report import page
  report = json.loads(files[JSON].read_text())
  files[PAGE] = files[JSON].with_name(PAGE)
  files[PAGE].write_text(page.render(report), encoding='utf-8')
  if png:
    files.update(pictures.take(files[PAGE]))
  return files


def write_numbers(
    run_dir: PathLike,
    output_dir: Optional[PathLike] = None) -> dict[str, pathlib.Path]:
  """Writes the files that need no plotly: `report.json` and `trace.json`.

  Arguments, result and errors are as for `write`.
  """
  report = contents.measure(run_data.read(run_dir))
  output = pathlib.Path(output_dir or pathlib.Path(run_dir, 'report'))
  output.mkdir(parents=True, exist_ok=True)
  written = {JSON: report, TRACE: trace.make(report)}
  for name, value in written.items():
    # NaN is no JSON, and raises an error.
    (output / name).write_text(json.dumps(value, allow_nan=False) + '\n')
  return {name: output / name for name in written}
