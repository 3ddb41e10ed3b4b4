# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The curves of how cost grows, with their formulas, as PNG."""

from __future__ import annotations

import pathlib
import statistics

import matplotlib
import numpy as np

from benchmarks import page_part
from benchmarks.growth import cells
from benchmarks.growth import page
from benchmarks.network import pictures

_WIDTH, _HEIGHT, _LINE_OF_LEGEND, _DOTS_PER_INCH = 7.0, 4.2, .2, 100
_COLORS, _COLUMNS = 10, 2


def write(results: page_part.Results,
          directory: pathlib.Path = page_part.PAGE.parent) -> None:
  """Writes a picture for each part that has figures.

  Args:
    results: What `make bench-growth` wrote.
    directory: That of the page.
  """
  matplotlib.use('Agg')
  for part in cells.PARTS:
    if part.name in results['parts']:
      path = directory / page.picture(part)
      path.parent.mkdir(parents=True, exist_ok=True)
      _write(results, part, path)


def _write(results, part, path):
  from matplotlib import pyplot
  height = _HEIGHT + _LINE_OF_LEGEND * (len(part.curves) // _COLUMNS)
  figure, axes = pyplot.subplots(
      figsize=(_WIDTH, height), layout='constrained')
  for number, curve in enumerate(part.curves):
    # Curves of the same colour differ in their markers.
    _draw(axes, results, part, curve.name, 'os'[number // _COLORS])
  axes.set(title=part.title, xlabel=part.size,
           ylabel=f'added {part.unit}' if part.is_added else part.unit,
           xscale='log', yscale='linear' if part.is_added else 'log')
  axes.set_xticks(part.sizes, [f'{size:,}' for size in part.sizes])
  axes.minorticks_off()
  if not part.is_added:
    pictures.label_decades(axes.yaxis)
  axes.grid(alpha=.3)
  figure.legend(loc='outside lower center', ncols=_COLUMNS,
                fontsize='small')
  # Without the version of the program: the same figures are the same picture.
  figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={'Software': None})
  pyplot.close(figure)


def _draw(axes, results, part, curve, marker):
  """The rounds' medians with their spread, and the formula as a line."""
  if part.is_added and curve == part.base:
    return
  of = page.beside_base if part.is_added else page.rounds
  found = {size: every for size in part.sizes
           for every in [of(results, part, curve, size)] if every}
  if not found:
    return
  middle = [statistics.median(every) for every in found.values()]
  spread = [[m - min(every) for m, every in zip(middle, found.values())],
            [max(every) - m for m, every in zip(middle, found.values())]]
  points = axes.errorbar(list(found), middle, spread, fmt=marker, markersize=4,
                         capsize=2, label=curve)
  fit = page.fitted(results, part, curve)
  if fit is not None:
    n = np.geomspace(min(found), max(found), 100)
    axes.plot(n, np.broadcast_to(fit.at(n), n.shape), linewidth=1,
              color=points[0].get_color())


if __name__ == '__main__':
  write(page.PART.read())
