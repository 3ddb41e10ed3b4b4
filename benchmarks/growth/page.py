# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/speed.md on how cost grows.

A figure is the median of the rounds; in brackets the least and the largest.
What is shown beside another curve is the ratio, or the difference, of the same
round. Formulas are fitted to the medians.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator

from benchmarks import machine
from benchmarks import page_part
from benchmarks.growth import cells
from benchmarks.growth import formulas

Results = page_part.Results


def rounds(results: Results, part: cells.Part, curve: str,
           size: int) -> list[float]:
  """Returns the figures of a curve at a size; empty: none.

  Args:
    results: What `make bench-growth` wrote.
    part: A part.
    curve: The name of one of its curves.
    size: One of its sizes.
  """
  return results['parts'].get(part.name, {}).get(curve, {}).get(str(size), [])


def beside_base(results: Results, part: cells.Part, curve: str,
                size: int) -> list[float]:
  """Returns `rounds`, or their ratios to or differences from the base's."""
  every = rounds(results, part, curve, size)
  if part.base in ('', curve):
    return every
  base = rounds(results, part, part.base, size)
  return [own - other if part.is_added else own / other
          for own, other in zip(every, base)]


def fitted(results: Results, part: cells.Part,
           curve: str) -> formulas.Fit | None:
  """Returns the formula of a curve, or None where there are too few figures.

  It is that of the figures themselves, not of the ratios to others; of what is
  shown as a difference it is that of the differences.
  """
  of = beside_base if part.is_added else rounds
  found = {size: statistics.median(every) for size in part.sizes
           for every in [of(results, part, curve, size)] if every}
  if len(found) < 2 or not all(found.values()):
    return None
  return formulas.fit(part.form, list(found), list(found.values()))


def picture(part: cells.Part) -> str:
  """Returns the file of a part's picture, seen from the page."""
  return f'pictures/growth_{part.name}.png'


def _lines(results: Results) -> Iterator[str]:
  yield ('Each figure is the median of the rounds, with the least and the '
         'largest. The formula in the last column has the least squares of '
         f'relative deviations. `make bench-growth`, seed {results["seed"]}, '
         f'{results["secs"] / 60:.0f} minutes on '
         f'{machine.sentence(results["about"])}')
  for part in cells.PARTS:
    if part.name in results['parts']:
      yield from _part(results, part)
  for what in results['not_run']:
    yield from ('', f'Not run: {what}.')


def _part(results, part):
  yield from ('', f'### {part.title}', '', part.text + _other_rows(part))
  rows = []
  for curve in part.curves:
    found = fitted(results, part, curve.name)
    rows.append((_name(part, curve.name), [
        *(_shown(beside_base(results, part, curve.name, size))
          for size in part.sizes), found and found.text('n')]))
  yield from page_part.table(
      part.size, [f'{size:,}' for size in part.sizes]
      + [f'{part.unit} of n {part.size}'], rows)
  yield from ('', f'![{part.title}: {part.unit}]({picture(part)})')


def _other_rows(part):
  if not part.base:
    return ''
  if part.is_added:
    return ' Other rows are the time that clipping adds in the same round.'
  return f' Other rows are ratios to the {part.base} in the same round.'


def _name(part, curve):
  if part.base in ('', curve):
    return f'{curve}, {part.unit}'
  return f'{curve}, adds {part.unit}' if part.is_added else f'{curve}, ratio'


def _shown(every):
  """One figure has no spread."""
  return f'{every[0]:.6g}' if len(every) == 1 else page_part.with_spread(every)


PART = page_part.PagePart(
    'growth', 'Growth of cost',
    'Not measured yet: `make bench-growth` writes this part.', _lines)
# By the page of the wrapper: the part whose curves it shows.
_CURVES = {'variable_clipping': 'rows', 'drop_stale_gradients': 'workers_1',
           'towers': 'towers', 'cross_shard': 'parameters'}


def _curves(name: str, results: Results) -> Iterator[str]:
  part = next(part for part in cells.PARTS if part.name == name)
  if name in results['parts']:
    added = ' The picture shows the time that clipping adds.'
    yield (f'{part.text}{added * part.is_added} '
           '[Speed](../speed.md#growth-of-cost) has the formulas and the '
           'machine.')
    yield ''
    yield f'![{part.title}: {part.unit}](../{picture(part)})'


WRAPPERS = [page_part.PagePart(
    'growth', '', PART.not_yet, functools.partial(_curves, name),
    page_part.PAGE.parent / 'wrappers' / f'{page}.md')
            for page, name in _CURVES.items()]


def write(results: Results | None = None) -> None:
  """Writes the file of results, if they are given, and all pages.

  Args:
    results: What `make bench-growth` measured.
  """
  PART.write(results)
  for part in WRAPPERS:
    part.write()


if __name__ == '__main__':
  write()
