# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two tables of README.md, on a network and on one host, and one of speed.md.

usage: python -m benchmarks.network.summary
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks import losses
from benchmarks import machine
from benchmarks import page_part
from benchmarks import rows
from benchmarks.network import cells
from benchmarks.network import figures

_README = machine.ROOT / 'README.md'
_LINK = '1000 Mbit/s'
# How README calls a cell of the network's table.
_CELLS = {
    'asynchronous SGD': 'asynchronous SGD on parameter servers',
    'Horovod': 'Horovod',
    'elastic, period 10, plain': 'elastic averaging, period 10',
    'elastic, period 10, overlap, int8':
        "the same with `overlap=True, exchange_dtype='int8'`",
}
# The rows of the losses that have the exchanges of these.
_EXCHANGES = {'elastic, period 10, plain': 'plain',
              'elastic, period 10, overlap, int8': 'overlap, int8'}
_ON_ONE_HOST = {
    'towers, 2 devices, MLP: step time / MirroredStrategy':
        '`TowerStrategy`, MLP',
    'towers, 2 devices, CNN: step time / MirroredStrategy':
        '`TowerStrategy`, CNN',
    'cross shard, 2 devices of a process, 220 variables: step time / '
    'MirroredStrategy': '`CrossShardStrategy`, 220 variables',
    'cross shard, 2 devices of a process, one variable of 10M floats: step '
    'time / MirroredStrategy':
        '`CrossShardStrategy`, one variable of 10M floats',
}


def _rates(results: figures.Results) -> dict[str, float]:
  link, = (each for each in cells.LINKS if each.name == _LINK)
  return {name: figures.rate(results, link, name) for name in _CELLS}


def _network(results: figures.Results) -> Iterator[str]:
  yield (f'Two workers and a parameter server on links of 1 Gbit/s, a model '
         f'of {results["model_bytes"] / 1e6:.2f} MB:')
  yield ''
  yield '| training | steps/s of each worker |'
  yield '|---|---|'
  for name, rate in _rates(results).items():
    yield f'| {_CELLS[name]} | {rate:.1f} |'


def _with_losses(results: figures.Results) -> Iterator[str]:
  """Yields the table for users: rates, ratios and losses."""
  rates, found = _rates(results), losses.PART.read()
  yield from page_part.table(
      'training', ['steps/s of each worker', 'times asynchronous SGD',
                   'loss after 600 steps'],
      [(_CELLS[name], [
          f'{rate:.1f}', f'{rate / rates[cells.ASYNC]:.1f}',
          found and name in _EXCHANGES and
          f'{statistics.median(found["losses"][_EXCHANGES[name]]):.3f}'])
       for name, rate in rates.items()])


def _one_host(results: page_part.Results) -> Iterator[str]:
  yield '| strategy and model | time of a step / step of `MirroredStrategy` |'
  yield '|---|---|'
  for row in rows.ROWS:
    if row.what in _ON_ONE_HOST:
      median = statistics.median(row.every(results['repeats']))
      yield f'| {_ON_ONE_HOST[row.what]} | {median:.2f} |'


PARTS = (
    page_part.PagePart('network', '', 'Not measured yet: `make bench-network`.',
                       _network, _README),
    page_part.PagePart('rows', '', 'Not measured yet: `make bench`.', _one_host,
                       _README),
    page_part.PagePart('network', '', 'Not measured yet: `make bench-network`.',
                       _with_losses, part='with losses'),
)


def write() -> None:
  """Writes the tables from the results that there are."""
  for part in PARTS:
    part.write()


if __name__ == '__main__':
  write()
