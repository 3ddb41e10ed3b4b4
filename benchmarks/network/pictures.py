# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The curves of steps per second by the communication period, as PNG."""

from __future__ import annotations

import pathlib
import statistics

import matplotlib

from benchmarks import page_part
from benchmarks.network import cells
from benchmarks.network import figures
from benchmarks.network import page

_INCHES_OF_LINK, _DOTS_PER_INCH = (3.6, 3.6), 100


def write(results: page_part.Results,
          directory: pathlib.Path = page_part.PAGE.parent) -> None:
  """Writes the picture: a link beside the other.

  Args:
    results: What `make bench-network` wrote.
    directory: That of the page.
  """
  matplotlib.use('Agg')
  from matplotlib import pyplot
  links = [link for link in cells.LINKS if link.name in results['links']]
  width, height = _INCHES_OF_LINK
  figure, every = pyplot.subplots(
      1, len(links), figsize=(width * len(links), height),
      layout='constrained', squeeze=False)
  for axes, link in zip(every[0], links):
    _draw(axes, results, link)
  every[0][0].set_ylabel('steps per second of a worker')
  handles = {label: handle for axes in every[0] for handle, label in zip(
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
  for exchange in cells.EXCHANGES:
    found = {period: every for period in cells.PERIODS for every in [
        figures.rounds(results, link, cells.elastic(period, exchange).name)]
             if every}
    middle = [statistics.median(every) for every in found.values()]
    spread = [[m - min(every) for m, every in zip(middle, found.values())],
              [max(every) - m for m, every in zip(middle, found.values())]]
    if found:
      axes.errorbar(list(found), middle, spread, marker='o', markersize=3,
                    capsize=2, linewidth=1, label=exchange)
  axes.set(title=link.name, xlabel='communication period', xscale='log',
           yscale='log')
  axes.set_xticks(cells.PERIODS, [str(period) for period in cells.PERIODS])
  axes.minorticks_off()
  axes.grid(alpha=.3)


if __name__ == '__main__':
  write(page.PART.read())
