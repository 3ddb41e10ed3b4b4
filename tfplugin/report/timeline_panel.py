# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 1: a row for each task over wall time."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from plotly import graph_objects as go

from tfplugin.report import panel
from tfplugin.report import timeline

_COLORS = {
    timeline.STARTING: '#bab0ac', timeline.WAITING: '#eeca3b',
    timeline.TRAINING: '#54a24b', timeline.SAVING: '#4c78a8',
    timeline.SERVING: '#9ecae9', timeline.ENDING: '#d8d0cc',
    timeline.AWAY: '#ff9d98', timeline.DEAD: '#c0392b',
    timeline.SILENT: '#79706e', timeline.UNKNOWN: '#d6a5c9'}
# Symbol, colour.
_MARKS = {'checkpoint': ('triangle-up', '#1f4e79'), 'fault': ('x', '#c0392b'),
          'error': ('star', '#c0392b'), 'restart': ('circle-open', '#000000'),
          'stop': ('square-open', '#000000'),
          'join': ('triangle-right', '#54a24b'),
          'leave': ('triangle-left', '#79706e'),
          'end': ('line-ns-open', '#000000')}
_ROW = 30
# The width of the plot; a narrower span cannot be seen.
_NUM_PIXELS = 1500
_SHOWN_ALWAYS = (timeline.DEAD, timeline.AWAY, timeline.UNKNOWN)


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `timeline` of report.json."""
  tasks = section['tasks']
  plot = panel.figure('', panel.SECS, '', height=170 + _ROW * len(tasks),
                      barmode='overlay', bargap=0.35)
  plot.update_layout(legend={'orientation': 'h', 'y': 1.02,
                             'yanchor': 'bottom', 'x': 0})
  plot.update_yaxes(autorange='reversed', categoryorder='array',
                    categoryarray=list(tasks))
  pixel = section['wall_secs'] / _NUM_PIXELS
  drawn = [(task, span) for task, told in tasks.items()
           for span in _visible(told['spans'], pixel)]
  for state in section['states']:
    _add_bars(plot, state,
              [(task, span) for task, span in drawn if span['state'] == state])
  for kind in _MARKS:
    _add_marks(plot, kind, [
        (task, mark) for task, told in tasks.items()
        for mark in _apart(told['marks'], kind, pixel)])
  return panel.Panel(
      'Timeline of the tasks',
      'A killed task is shown as dead from its last event on, which is at most '
      '5 s before the kill. Parameter servers and evaluators write no events '
      'while they serve.',
      [panel.Number('wall time, s', 'timeline/wall_secs', section['wall_secs'],
                    ',.1f')],
      [plot], missing=section['missing'])


def _visible(spans: Sequence[Mapping[str, Any]],
             pixel: float) -> list[dict[str, Any]]:
  """Joins spans that are narrower than a pixel to the span before them."""
  drawn: list[dict[str, Any]] = []
  for span in spans:
    is_narrow = (span['end'] - span['start'] < pixel and
                 span['state'] not in _SHOWN_ALWAYS)
    before = drawn[-1] if drawn else None
    touches = before and span['start'] - before['end'] < pixel
    if touches and (is_narrow or before['state'] == span['state']):
      before['end'] = span['end']
    else:
      drawn.append(dict(span))
  return drawn


def _apart(marks: Sequence[Mapping[str, Any]], kind: str,
           pixel: float) -> list[Mapping[str, Any]]:
  """Returns the marks of a kind; of checkpoints in one place the first."""
  found, latest = [], float('-inf')
  for mark in marks:
    if mark['kind'] == kind and (kind != 'checkpoint' or
                                 mark['time'] - latest >= 4 * pixel):
      found.append(mark)
      latest = mark['time']
  return found


def _add_bars(plot: go.Figure, state: str, pairs) -> None:
  if pairs:
    plot.add_trace(go.Bar(
        orientation='h', name=state, y=[task for task, _ in pairs],
        base=[span['start'] for _, span in pairs],
        x=[span['end'] - span['start'] for _, span in pairs],
        marker={'color': _COLORS[state], 'line': {'width': 0}},
        customdata=[f' for {", ".join(span["on"])}' if span['on'] else ''
                    for _, span in pairs],
        hovertemplate='%{y} ' + state + '%{customdata}<br>from %{base:.2f} s, '
                      '%{x:.2f} s long<extra></extra>'))


def _add_marks(plot: go.Figure, kind: str, pairs) -> None:
  if pairs:
    symbol, color = _MARKS[kind]
    plot.add_trace(go.Scatter(
        mode='markers', name=kind, y=[task for task, _ in pairs],
        x=[mark['time'] for _, mark in pairs],
        text=[mark['text'] for _, mark in pairs],
        marker={'symbol': symbol, 'color': color,
                'size': 7 if kind == 'checkpoint' else 12,
                'line': {'width': 2, 'color': color}},
        hovertemplate='%{y} at %{x:.2f} s<br>%{text}<extra></extra>'))
