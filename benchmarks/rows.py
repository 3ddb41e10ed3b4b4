# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/speed.md: what is measured, beside what, and the aim.

A row's figure is computed from those of one repeat, so that both sides of a
ratio are of the same minutes; the page has the median of the repeats, with the
least and the largest. `make bench` writes the file and the part of the page.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Callable
from typing import NamedTuple

from benchmarks import machine
from benchmarks import page_part

# By name: milliseconds, steps per second, models.
Figures = Mapping[str, float]

NUM_ROWS = (100_000, 1_000_000, 10_000_000)
SHAPES = ('220 variables', 'one variable of 10M floats')
PERIODS = (1, 10, 100)
_KINDS = {'': '', ', reference variables': ' v1'}


class Row(NamedTuple):
  """A row.

  Attributes:
    what: Is measured, and beside what.
    figure: Computes it of the figures of a repeat; a KeyError says that one
      was not measured.
    aim: The bound of its median, or None: for comparison alone.
    is_least: Whether the bound is the least that it may be.
  """

  what: str
  figure: Callable[[Figures], float]
  aim: float | None = None
  is_least: bool = False

  def every(self, repeats: list[Figures]) -> list[float]:
    """Returns the figure of each repeat that has it.

    Args:
      repeats: Of the results.
    """
    found = []
    for figures in repeats:
      try:
        found.append(self.figure(figures))
      except KeyError:
        continue
    return found

  def is_met(self, figure: float) -> bool:
    """Returns whether a figure keeps to the aim, which there is.

    Args:
      figure: The median.
    """
    return figure >= self.aim if self.is_least else figure <= self.aim


def _ratio(one: str, other: str) -> Callable[[Figures], float]:
  return lambda of: of[one] / of[other]


def _added(what: str) -> Callable[[Figures], float]:
  """Milliseconds that clipping adds to a step."""
  return lambda of: of[f'{what}/clipped_ms'] - of[f'{what}/plain_ms']


def _added_ratio(one: str, other: str) -> Callable[[Figures], float]:
  return lambda of: _added(one)(of) / _added(other)(of)


def _passes(run: str, beyond: str) -> Callable[[Figures], float]:
  return lambda of: _added(f'{run}/dense {beyond}')(of) / of[
      f'{run}/dense {beyond}/pass_ms']


def _clipping() -> Iterator[Row]:
  for beyond in ('0%', '1%', '10%', '100%'):
    for kind, suffix in _KINDS.items():
      yield Row(f'dense clip of [500000, 64], {beyond} of the rows beyond the '
                f'bound{kind}: added time / one pass of numpy over the table',
                _passes(f'clipping{suffix}', beyond), 2)
  for kind, ours in (('', 'clipping/dense 100%'),
                     (', reference variables', 'as contrib/dense')):
    yield Row(f'dense clip, all rows beyond the bound{kind}: added time / '
              'added time of contrib', _added_ratio(ours, 'contrib/dense'), 0.2)
  for beyond in ('none', 'all'):
    first, *_, last = NUM_ROWS
    yield Row(f'sparse clip of 4,096 ids, {beyond} beyond the bound: added '
              f'time in {last:,} rows / in {first:,} rows', _added_ratio(
                  f'clipping/sparse {last} {beyond}',
                  f'clipping/sparse {first} {beyond}'), 1.25)
    for number in NUM_ROWS:
      yield Row(f'sparse clip in {number:,} rows, {beyond} beyond the bound: '
                'added time / added time of contrib', _added_ratio(
                    f'clipping/sparse {number} {beyond}',
                    f'contrib/sparse/{number}'), 0.5)


def _drop_stale() -> Iterator[Row]:
  for number, size in ((1, 1000), (50, 128), (50, 300)):
    what = f'drop_stale/{number} of {size}'
    yield Row(f'drop stale, Adam, {number} variable{"s" * (number > 1)} of '
              f'[{size}, {size}]: step time / bare optimizer',
              _ratio(f'{what}/wrapped_ms', f'{what}/bare_ms'), 1.05)
  for number in (1, 50):
    what = f'contrib/drop_stale/{number}'
    yield Row(f'contrib\'s drop stale, {number} variable{"s" * (number > 1)} '
              'of [128, 128]: step time / bare optimizer',
              _ratio(f'{what}/wrapped_ms', f'{what}/bare_ms'))


def _towers() -> Iterator[Row]:
  for peer in ('one device', 'MirroredStrategy', 'CentralStorageStrategy'):
    for model in ('mlp', 'cnn'):
      yield Row(f'towers, 2 devices, {model.upper()}: step time / {peer}',
                _ratio(f'towers/{model}/towers', f'towers/{model}/{peer}'), 1)
  for model in ('mlp', 'cnn'):
    what = f'contrib/towers/{model}'
    yield Row(f'contrib\'s towers, 2 devices, {model.upper()}: step time / one '
              'device', _ratio(f'{what}/towers_ms', f'{what}/one_device_ms'))


def _cross_shard() -> Iterator[Row]:
  for number, kind, peer, aim in (
      (1, 'ours', 'MirroredStrategy', 1),
      (2, 'ours', 'MultiWorkerMirroredStrategy', 1),
      (2, 'ours', 'all-reduce', None),
      (2, 'ours', 'Horovod', None),
      (2, 'engine', 'MultiWorkerMirroredStrategy', 1),
      (2, 'engine', 'Horovod', 1)):
    for shapes in SHAPES:
      ours = ('cross shard' if kind == 'ours' else
              'cross shard, `engine=\'horovod\'`')
      where = ('2 devices of a process' if number == 1 else '2 processes')
      what = f'cross_shard/{number}/{shapes}'
      if peer == 'all-reduce':
        shown = 'TensorFlow\'s all-reduce of one tensor of that size'
      else:
        shown = peer
      yield Row(f'{ours}, {where}, {shapes}: step time / {shown}',
                _ratio(f'{what}/{kind}', f'{what}/{peer}'), aim)


def _elastic() -> Iterator[Row]:
  for period, aim in zip(PERIODS, (0.9, 1, 1.1)):
    for form in ('optimizer', 'strategy'):
      yield Row(f'elastic {form}, period {period}: steps per second / '
                'asynchronous SGD', _ratio(
                    f'elastic/{form} {period}/rate', 'elastic/async/rate'),
                aim, is_least=True)
  for period in PERIODS:
    yield Row(f'contrib\'s elastic optimizer, period {period}: steps per '
              'second / its asynchronous SGD', _ratio(
                  f'contrib/elastic/period_{period}', 'contrib/elastic/async'))
    yield Row(f'elastic optimizer, period {period}: steps per second / contrib',
              _ratio(f'as contrib/elastic/period_{period}',
                     f'contrib/elastic/period_{period}'),
              1, is_least=True)
  for form in ('optimizer', 'strategy'):
    yield Row(f'elastic {form}: bytes sent and received in an exchange / bytes '
              'of the model', lambda of, form=form: max(
                  of[f'elastic/{form} {period}/models']
                  for period in PERIODS), 2.01)


ROWS = (*_clipping(), *_drop_stale(), *_towers(), *_cross_shard(), *_elastic())


def _lines(results: page_part.Results) -> Iterator[str]:
  repeats = results['repeats']
  yield (f'Each figure is a ratio "a / b": the median of {len(repeats)} '
         'repeats, with the least and the largest. In each repeat `a` and `b` '
         'are both measured several times, and the fastest of each count. '
         '"Aim" is the bound for the median, and "reached" compares the two; '
         'without an aim, "-", a row is for comparison alone. '
         'One pass of numpy over a table multiplies it in place. "Reference '
         'variables" are variables made with `use_resource=False`. "contrib" '
         'is `tf.contrib` on TensorFlow 1.15.5, run in the same repeats by the '
         'same program, `benchmarks/contrib_reference.py`. `make bench` on '
         f'{machine.sentence(results["about"])}')
  yield from _table(ROWS, results)
  missing = [row.what for row in ROWS if not row.every(repeats)]
  if missing:
    yield from ('', f'Not run: {"; ".join(missing)}.')


def _table(rows: Sequence[Row], results: page_part.Results) -> Iterator[str]:
  shown = []
  for row in rows:
    every = row.every(results['repeats'])
    if every:
      is_met = row.aim is not None and row.is_met(statistics.median(every))
      shown.append((row.what, [
          page_part.with_spread(every),
          row.aim and f'{">=" if row.is_least else "<="} {row.aim:g}',
          row.aim and ('yes' if is_met else 'no')]))
  yield from page_part.table('comparison', ['measured', 'aim', 'reached'],
                            shown)


PART = page_part.PagePart(
    'rows', '', 'Not measured yet: `make bench` writes this part.', _lines)


if __name__ == '__main__':
  PART.write()
