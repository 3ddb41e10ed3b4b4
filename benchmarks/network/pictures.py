# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The curves of steps per second by the communication period, as PNG."""

from __future__ import annotations

import itertools
import math
import pathlib
import statistics

import matplotlib
import matplotlib.axis
from matplotlib import ticker

from benchmarks import page_part
from benchmarks.network import cells
from benchmarks.network import figures
from benchmarks.network import page

# The column of a page is 750 pixels wide: two links stand beside each other.
_INCHES_OF_LINK, _DOTS_PER_INCH, _BESIDE = (3.75, 2.9), 100, 2
# More decades have room for their powers of ten only.
_DECADES_WITH_STEPS = 3


def label_decades(axis: matplotlib.axis.Axis) -> None:
  """Labels 1, 2 and 5 of each decade: few axes have two powers of ten.

  Args:
    axis: A logarithmic one, after everything is drawn.
  """
  least, largest = axis.get_view_interval()
  few = largest / least < 10**_DECADES_WITH_STEPS
  axis.set_major_locator(
      ticker.LogLocator(subs=(1, 2, 5) if few else (1,), numticks=15))
  axis.set_major_formatter(ticker.FuncFormatter(lambda tick, _: f'{tick:,g}'))
  axis.set_minor_locator(ticker.NullLocator())


def write(results: page_part.Results,
          directory: pathlib.Path = page_part.PAGE.parent) -> None:
  """Writes the picture: two links beside each other.

  Args:
    results: What `make bench-network` wrote.
    directory: That of the page.
  """
  matplotlib.use('Agg')
  from matplotlib import pyplot
  links = [link for link in cells.LINKS if link.name in results['links']]
  width, height = _INCHES_OF_LINK
  rows = math.ceil(len(links) / _BESIDE)
  figure, every = pyplot.subplots(
      rows, _BESIDE, figsize=(width * _BESIDE, height * rows),
      layout='constrained', squeeze=False)
  for axes, link in itertools.zip_longest(every.flat, links):
    if link is None:
      axes.remove()
    else:
      _draw(axes, results, link)
  figure.supylabel('steps per second of a worker', fontsize='medium')
  handles = {label: handle for axes in figure.axes for handle, label in zip(
      *axes.get_legend_handles_labels())}
  figure.legend(handles.values(), handles.keys(), loc='outside lower center',
                ncols=4, fontsize='small')
  path = directory / page.PICTURE
  path.parent.mkdir(parents=True, exist_ok=True)
  # Without the version of the program: the same figures are the same picture.
  figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={'Software': None})
  pyplot.close(figure)


def _draw(axes, results, link):
  """The rounds' medians with their spread; what has no period, as lines."""
  for name, style in ((cells.LOCAL, ':'), (cells.ASYNC, '--')):
    rate = figures.rate(results, link, name)
    if rate:
      axes.axhline(rate, color='gray', linestyle=style, linewidth=1, label=name)
  for color, exchange in enumerate(cells.EXCHANGES):
    found = {period: every for period in cells.PERIODS for every in [
        figures.rounds(results, link, cells.elastic(period, exchange).name)]
             if every}
    middle = [statistics.median(every) for every in found.values()]
    spread = [[m - min(every) for m, every in zip(middle, found.values())],
              [max(every) - m for m, every in zip(middle, found.values())]]
    if found:
      axes.errorbar(list(found), middle, spread, marker='o', markersize=3,
                    capsize=2, linewidth=1, label=exchange, color=f'C{color}')
  axes.set(title=link.name, xlabel='communication period', xscale='log',
           yscale='log')
  axes.set_xticks(cells.PERIODS, [str(period) for period in cells.PERIODS])
  axes.minorticks_off()
  label_decades(axes.yaxis)
  axes.grid(alpha=.3)


if __name__ == '__main__':
  write(page.PART.read())
