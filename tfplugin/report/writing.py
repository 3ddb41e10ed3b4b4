# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writer of the report of a run: its numbers, its trace and its page.

The trace is for ui.perfetto.dev and chrome://tracing:

  Trace Event Format: spans are `X`, marks `i`, counters `C`, names `M`; times
  are microseconds.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from tfplugin.report import outcome
from tfplugin.report import page
from tfplugin.report import pictures
from tfplugin.report.reading import run_data

JSON = 'report.json'
TRACE = 'trace.json'
PAGE = 'report.html'
# The version of the format of report.json.
VERSION = 1

_MICROS = 1e6


def write(run_dir: str | os.PathLike,
          output_dir: str | os.PathLike | None = None,
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
  report = json.loads(files[JSON].read_text())
  files[PAGE] = files[JSON].with_name(PAGE)
  files[PAGE].write_text(page.render(report), encoding='utf-8')
  if png:
    files.update(pictures.take(files[PAGE]))
  return files


def write_numbers(
    run_dir: str | os.PathLike,
    output_dir: str | os.PathLike | None = None) -> dict[str, pathlib.Path]:
  """Writes `report.json` and `trace.json`, which need no plotly, as `write`."""
  report = measure(run_data.read(run_dir))
  output = pathlib.Path(output_dir or pathlib.Path(run_dir, 'report'))
  output.mkdir(parents=True, exist_ok=True)
  written = {JSON: report, TRACE: make_trace(report)}
  for name, value in written.items():
    # NaN is no JSON, and raises an error.
    (output / name).write_text(json.dumps(value, allow_nan=False) + '\n')
  return {name: output / name for name in written}


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns the content of report.json: a section for each panel.

  Before them it has `outcome`, for the title. Each section has `missing`: its
  gaps, and the sources that would fill them.
  """
  sections = {name: section.measure(run)
              for name, section in page.SECTIONS.items()}
  return {'version': VERSION, 'run_dir': run.run_dir,
          'outcome': outcome.measure(run, sections['speed']), **sections}


def make_trace(report: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the trace for the result of `measure`: a process for each task."""
  events = []
  for pid, (task, numbers) in enumerate(report['timeline']['tasks'].items(), 1):
    events += _names(pid, task)
    events += (_span(pid, span) for span in numbers['spans'])
    events += (_mark(pid, mark) for mark in numbers['marks'])
    worker = report['speed']['workers'].get(task)
    if worker:
      events += _counter(pid, 'steps/s', worker['rate'])
      events += _counter(pid, 'global step', worker['step'])
  return {'traceEvents': events, 'displayTimeUnit': 'ms',
          'otherData': {'run_dir': report['run_dir']}}


def _names(pid: int, task: str) -> list[dict[str, Any]]:
  common = {'ph': 'M', 'pid': pid, 'tid': 1}
  return [{**common, 'name': 'process_name', 'args': {'name': task}},
          {**common, 'name': 'process_sort_index', 'args': {'sort_index': pid}},
          {**common, 'name': 'thread_name', 'args': {'name': 'states'}}]


def _span(pid: int, span: Mapping[str, Any]) -> dict[str, Any]:
  return {'ph': 'X', 'pid': pid, 'tid': 1, 'name': span['state'],
          'cat': 'state', 'ts': span['start'] * _MICROS,
          'dur': (span['end'] - span['start']) * _MICROS,
          'args': {'on': ', '.join(span['on'])} if span['on'] else {}}


def _mark(pid: int, mark: Mapping[str, Any]) -> dict[str, Any]:
  return {'ph': 'i', 's': 'p', 'pid': pid, 'tid': 1, 'name': mark['kind'],
          'cat': 'mark', 'ts': mark['time'] * _MICROS,
          'args': {'text': mark['text'], 'step': mark['step']}}


def _counter(pid: int, name: str,
             curve: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
  for x, y in zip(curve['x'], curve['y']):
    if y is not None:
      yield {'ph': 'C', 'pid': pid, 'name': name, 'ts': x * _MICROS,
             'args': {name: y}}
