# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a panel is, and how its curves look."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Optional

from plotly import graph_objects as go

_HEIGHT = 340
# In a plot with lines; each is an element of the page, and they hide the lines.
_MOST_MARKERS = 1000
_COLORS = ('#4c78a8', '#f58518', '#54a24b', '#b279a2', '#e45756', '#72b7b2',
           '#9d755d', '#d67195', '#eeca3b', '#79706e')
SECS = 'seconds since the first event'


class Number(NamedTuple):
  """A number that the page shows large.

  Attributes:
    label: What it is.
    path: Where report.json has it, e.g. `speed/goodput`.
    value: It; None: not known.
    form: As `format` takes it.
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

  Attributes:
    title: Its heading.
    reading: A sentence or two: how to read it.
    numbers: See `Number`.
    figures: The plots.
    tables: The tables.
    missing: What the run has not told, and what would write it.
  """

  title: str
  reading: str
  numbers: Sequence[Number] = ()
  figures: Sequence[go.Figure] = ()
  tables: Sequence[Table] = ()
  missing: Sequence[str] = ()

  @property
  def has_data(self) -> bool:
    """Returns whether there is anything to show."""
    return bool(self.figures or self.tables or
                any(number.value for number in self.numbers))


def color(index: int) -> str:
  """Returns the colour of the task, or group, of that number."""
  return _COLORS[index % len(_COLORS)]


def figure(title: str, x_title: str, y_title: str, height: int = _HEIGHT,
           **layout: Any) -> go.Figure:
  """Returns an empty plot.

  Args:
    title: Above it.
    x_title: Below the x axis, with its unit.
    y_title: Beside the y axis, with its unit.
    height: In pixels.
    **layout: What else plotly's layout is to have.
  """
  return go.Figure(layout={
      'title': {'text': title, 'font': {'size': 15}},
      'template': 'plotly_white',
      'height': height, 'margin': {'l': 70, 'r': 20, 't': 48, 'b': 48},
      'xaxis': {'title': {'text': x_title}},
      'yaxis': {'title': {'text': y_title}},
      'legend': {'font': {'size': 11}, 'tracegroupgap': 0},
      'showlegend': True, **layout})


def lines(plot: go.Figure, curves: Mapping[str, Mapping[str, Any]],
          dash: Optional[str] = None, mode: str = 'lines',
          first: int = 0) -> None:
  """Adds a line for each curve.

  Args:
    plot: Where to.
    curves: As `series.thin` returns them, by name.
    dash: `dot` or `dash`; None: a full line.
    mode: `lines`, `markers`, or both.
    first: The number of the first colour.
  """
  if sum(len(curve['x']) for curve in curves.values()) > _MOST_MARKERS:
    mode = mode.replace('lines+markers', 'lines')
  for index, (name, curve) in enumerate(curves.items(), first):
    few = len(curve['x']) < 2
    plot.add_trace(go.Scatter(
        x=curve['x'], y=curve['y'], name=name,
        mode='lines+markers' if few and mode == 'lines' else mode,
        line={'color': color(index), 'width': 1.5, 'dash': dash},
        marker={'size': 6}, connectgaps=False))
    lone = [] if few or mode != 'lines' else _lone(curve['y'])
    if lone:
      plot.add_trace(go.Scatter(
          x=[curve['x'][at] for at in lone], y=[curve['y'][at] for at in lone],
          name=name, mode='markers', legendgroup=name, showlegend=False,
          marker={'size': 4, 'color': color(index)}))
      plot.data[-2].legendgroup = name


def _lone(values: Sequence[Optional[float]]) -> list[int]:
  """Returns where a value is between two gaps, of which a line has nothing."""
  around = [None, *values, None]
  return [at for at, value in enumerate(values) if value is not None
          and around[at] is None and around[at + 2] is None]


def nonfinite(curves: Mapping[str, Mapping[str, Any]]) -> list[str]:
  """Returns a remark for each curve that has NaN or infinity in it."""
  return [f'{name}: {curve["num_nonfinite"]} of {curve["num_points"]} values '
          'are not finite; the line has gaps there.'
          for name, curve in curves.items() if curve['num_nonfinite']]
