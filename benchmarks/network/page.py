# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/speed.md that is written from benchmarks/results.

A figure is the median of the rounds, of the mean of both workers; in brackets
the least and the largest round.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Optional

from benchmarks import machine
from benchmarks import page_part
from benchmarks.network import cells
from tfplugin.ops import network_times

Results = page_part.Results


def rounds(results: Results, link: cells.Link, name: str) -> list[float]:
  """Returns the steps per second per worker of each round; empty: none.

  Args:
    results: What `make bench-network` wrote.
    link: A link.
    name: That of a cell.
  """
  measured = results['links'].get(link.name, {}).get(name)
  return [statistics.mean(each) for each in measured['steps_per_sec']
          ] if measured else []


def rate(results: Results, link: cells.Link, name: str) -> Optional[float]:
  """Returns the median of `rounds`, or None."""
  every = rounds(results, link, name)
  return statistics.median(every) if every else None


def models_moved(results: Results, link: cells.Link, name: str,
                 ) -> Optional[tuple[float, float]]:
  """Returns what a worker sends and receives in a communication, in models."""
  measured = results['links'].get(link.name, {}).get(name)
  moved = [each for each in (measured or {}).get('bytes', ()) if each]
  return tuple(statistics.median(way) / results['model_bytes']
               for way in zip(*moved)) if moved else None


def predicted(results: Results, link: cells.Link,
              cell: cells.Cell) -> Optional[float]:
  """Returns the steps per second that `network_times` foresees, or None."""
  alone = rate(results, link, cells.LOCAL)
  if alone is None or link.mbit is None:
    return None
  cluster = network_times.Cluster(
      results['model_bytes'], 1 / alone,
      link.mbit * 1e6 / 8 * network_times.PAYLOAD, results['num_worker'])
  if cell.name in cells.ON_SERVER:
    return 1 / network_times.async_secs(cluster)
  if cell.name in cells.RINGS:
    return 1 / network_times.ring_secs(cluster)
  settings = cells.EXCHANGES[cell.exchange]
  return cell.period / network_times.elastic_secs(
      cluster, cell.period, settings.get('overlap', False),
      settings.get('exchange_dtype'))


def _lines(results) -> Iterator[str]:
  about = results['about']
  yield (f'Two workers and a parameter server, each a host of its own in a '
         f'namespace of the network, an MLP of '
         f'{results["model_bytes"] / 1e6:.2f} MB, 32 rows a step, seed '
         f'{results["seed"]}. Steps per second of a worker: the median of the '
         'rounds, with the least and the largest. '
         f'`make bench-network{" ARGS=--quick" * results["is_quick"]}` '
         f'on {machine.sentence(about)}')
  links = [link for link in cells.LINKS if link.name in results['links']]
  yield from page_part.table(
      'steps/s', [link.name for link in links],
      [(name, [page_part.with_spread(rounds(results, link, name))
               for link in links])
       for name in (cells.LOCAL, *cells.ON_SERVER, *cells.RINGS)])
  for link in links:
    yield from page_part.table(
        f'{link.name}, elastic averaging', list(cells.EXCHANGES),
        [(f'period {period}', [
            page_part.with_spread(rounds(
                results, link, cells.elastic(period, exchange).name))
            for exchange in cells.EXCHANGES]) for period in cells.PERIODS])
  yield from _moved(results, links)
  yield from _off(results, links)
  for what in results['not_run']:
    yield from ('', f'Not run: {what}.')


def _moved(results, links):
  rows = []
  for cell in (*cells.CELLS, *cells.RING_CELLS):
    moved = [models_moved(results, link, cell.name) for link in links]
    if any(moved):
      rows.append((cell.name, [
          each and f'{each[0]:.3f}, {each[1]:.3f}' for each in moved]))
  yield from ('', 'Bytes on a worker\'s interface in a communication, in '
              'models: sent, received. Of up to 64 KB that the kernel cuts '
              'into frames later, it counts one header.')
  yield from page_part.table('models', [link.name for link in links], rows)


def _off(results, links):
  shaped, rows = [link for link in links if link.mbit is not None], []
  for cell in (*cells.CELLS[1:], *cells.RING_CELLS):
    off = []
    for link in shaped:
      measured = rate(results, link, cell.name)
      foreseen = predicted(results, link, cell)
      off.append(measured and foreseen and f'{foreseen / measured - 1:+.1%}')
    if any(off):
      rows.append((cell.name, off))
  yield from ('', 'What `tfplugin-plan` foresees is beside that:')
  yield from page_part.table(
      'predicted', [link.name for link in shaped], rows)


PART = page_part.PagePart(
    'network', 'On a network, measured',
    'Not measured yet: `make bench-network`, as root on Linux, writes this '
    'part.', _lines)
PICTURE = 'pictures/network_periods.png'


def _curves(results: Results) -> Iterator[str]:
  del results
  yield ('Steps per second of each of two workers, by the communication period '
         'and what is exchanged, on links of several rates; the machine, and '
         'all figures: [speed](../speed.md#on-a-network-measured).')
  yield ''
  yield f'![Steps per second by the communication period](../{PICTURE})'


WRAPPER = page_part.PagePart(
    'network', '', PART.not_yet, _curves,
    page_part.PAGE.parent / 'wrappers' / 'elastic_averaging.md')


def write(results: Optional[Results] = None) -> None:
  """Writes the file of results, if they are given, and all pages.

  Args:
    results: What `make bench-network` measured.
  """
  PART.write(results)
  WRAPPER.write()


if __name__ == '__main__':
  write()
