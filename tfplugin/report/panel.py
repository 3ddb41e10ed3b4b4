# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Types of a panel and its parts, and the style of its curves."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

if typing.TYPE_CHECKING:
  from plotly.graph_objects import Figure

_HEIGHT = 340
# The most markers of a plot with lines: each is an element of the page, and
# they hide the lines.
_MOST_MARKERS = 1000
_COLORS = ('#4c78a8', '#f58518', '#54a24b', '#b279a2', '#e45756', '#72b7b2',
           '#9d755d', '#d67195', '#eeca3b', '#79706e')
SECS = 'seconds since the first event'


class Number(NamedTuple):
  """A number that the page shows large.

  `path` is its place in report.json, e.g. `speed/goodput`. `value` is None if
  it is unknown; `form` is for `format`.
  """

  label: str
  path: str
  value: Any
  form: str = ',.4g'


class Table(NamedTuple):
  """Rows under their headings."""

  headings: Sequence[str]
  rows: Sequence[Sequence[Any]]


class Panel(NamedTuple):
  """One part of the page.

  `reading` explains in a sentence or two how to read it. `missing` has the gaps
  of the run, and the sources that would fill them.
  """

  title: str
  reading: str
  numbers: Sequence[Number] = ()
  figures: Sequence[Figure] = ()
  tables: Sequence[Table] = ()
  missing: Sequence[str] = ()

  @property
  def has_data(self) -> bool:
    """True if there is anything to show."""
    return bool(self.figures or self.tables or
                any(number.value for number in self.numbers))


def color(index: int) -> str:
  """Returns the colour of the task, or group, with an index."""
  return _COLORS[index % len(_COLORS)]


def figure(title: str, x_title: str, y_title: str, height: int = _HEIGHT,
           **layout: Any) -> Figure:
  """Returns an empty plot; `layout` has further settings of plotly's layout."""
  # Imported here: plotly is an extra.
  from plotly import graph_objects as go
  return go.Figure(layout={
      'title': {'text': title, 'font': {'size': 15}},
      'template': 'plotly_white',
      'height': height, 'margin': {'l': 70, 'r': 20, 't': 48, 'b': 48},
      'xaxis': {'title': {'text': x_title}},
      'yaxis': {'title': {'text': y_title}},
      'legend': {'font': {'size': 11}, 'tracegroupgap': 0},
      'showlegend': True, **layout})


def lines(plot: Figure, curves: Mapping[str, Mapping[str, Any]],
          dash: str | None = None, mode: str = 'lines',
          first: int = 0) -> None:
  """Adds a line to a plot for each curve of `series.thin`, by name.

  `dash` is `dot`, `dash` or None, a full line. `mode` is `lines`, `markers`, or
  both. `first` is the index of the first colour.
  """
  if sum(len(curve['x']) for curve in curves.values()) > _MOST_MARKERS:
    mode = mode.replace('lines+markers', 'lines')
  for index, (name, curve) in enumerate(curves.items(), first):
    few = len(curve['x']) < 2
    plot.add_scatter(
        x=curve['x'], y=curve['y'], name=name,
        mode='lines+markers' if few and mode == 'lines' else mode,
        line={'color': color(index), 'width': 1.5, 'dash': dash},
        marker={'size': 6}, connectgaps=False)
    lone = [] if few or mode != 'lines' else _lone(curve['y'])
    if lone:
      plot.add_scatter(
          x=[curve['x'][at] for at in lone], y=[curve['y'][at] for at in lone],
          name=name, mode='markers', legendgroup=name, showlegend=False,
          marker={'size': 4, 'color': color(index)})
      plot.data[-2].legendgroup = name


def _lone(values: Sequence[float | None]) -> list[int]:
  """Returns the indices of values between two gaps, where no line is drawn."""
  around = [None, *values, None]
  return [at for at, value in enumerate(values) if value is not None
          and around[at] is None and around[at + 2] is None]


def nonfinite(curves: Mapping[str, Mapping[str, Any]]) -> list[str]:
  """Returns a remark for each curve that has NaN or infinity in it."""
  return [f'{name}: {curve["num_nonfinite"]} of {curve["num_points"]} values '
          'are not finite; the line has gaps there.'
          for name, curve in curves.items() if curve['num_nonfinite']]


def shown(value: float | None, form: str = '.4g') -> str:
  """Returns a cell of a table; None stands for a value that is not finite."""
  return 'not finite' if value is None else format(value, form)
