# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trace of a run, for ui.perfetto.dev and chrome://tracing.

  Trace Event Format: spans are `X`, marks `i`, counters `C`, names `M`; times
  are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

_MICROS = 1e6


def make(report: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the trace for the result of `contents.measure`.

  Each task is a process, with its steps/s as a counter.
  """
  events = []
  for pid, (task, told) in enumerate(report['timeline']['tasks'].items(), 1):
    events += _names(pid, task)
    events += (_span(pid, span) for span in told['spans'])
    events += (_mark(pid, mark) for mark in told['marks'])
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
