# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The part of docs/speed.md that is written from benchmarks/results.

A figure is that of all rounds together, of the mean of both workers; in
brackets the least and the largest round.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterator
from collections.abc import Sequence

from benchmarks import machine
from benchmarks import page_part
from benchmarks.network import aims
from benchmarks.network import cells
from benchmarks.network import figures
from tfplugin.bin import network_times

_EVERY = cells.CELLS + cells.RING_CELLS + cells.HOROVOD_CELLS
# Of the processors' time when one waits: each turn halves what is left of it.
_TURNS = 40


def foreseen_secs(results: figures.Results, link: cells.Link, cell: cells.Cell,
                  num_worker: int | None = None) -> float | None:
  """Returns the time of a period that `network_times` foresees, or None.

  What the hosts take is that of the cells without a shaped link, if those are
  measured. Both workers' hosts are on one machine: all that its processors do
  takes longer where the other worker does something, too, as its local steps
  do. So the longer one waits for the link, the faster the other one is, in its
  steps and in its calls of the server. On a
  slow link messages come in smaller pieces, each of which the kernel hands over
  by itself: what more it takes there is beside the wire, so that it counts
  where the processors are what is waited for. All times of processors are those
  of the machine while the cell was measured, as local steps beside it say.

  Args:
    results: What has been measured so far.
    link: A link.
    cell: A cell.
    num_worker: Instead of that of the results.
  """
  both, unshaped = (figures.local_rate(results, each, cell.name)
                    for each in (link, cells.LINKS[0]))
  if both is None or link.mbit is None:
    return None
  slower = (unshaped or both) / both
  host, call = (secs * slower for secs in host_costs(results, cell))
  kernel = _more_of_the_kernel(results, link, cell, slower)
  steps_alone, calls_alone = _alone_to_both(results)
  part, secs = 1.0, 0.0
  for _ in range(_TURNS):
    step = (part + (1 - part) * steps_alone) / both
    calls = part + (1 - part) * calls_alone
    secs = _secs(network_times.Cluster(
        results['model_bytes'], step,
        link.mbit * 1e6 / 8 * network_times.PAYLOAD,
        num_worker or results['num_worker'], results.get('num_ps', 1),
        largest_part=results['largest_part'], host_secs=calls * host,
        call_secs=calls * call), cell)
    busy = max(cell.period, 1) * step + calls * (
        max(cell.period, 1) * call + host + kernel)
    if cell.exchange:
      secs = max(secs, busy)
    if cell not in cells.SYNC_CELLS:  # In which all work at the same time.
      part = (part + _beside(min(1.0, busy / secs), cell, results)) / 2
  return secs


def _beside(busy, cell, results):
  """The part of what a worker works in which the other one does, too.

  Workers of elastic averaging that have come apart work by turns as far as they
  can; others as chance has it.

  Args:
    busy: The part of the time in which each of them works.
    cell: The cell.
    results: What has been measured so far.
  """
  if not cell.exchange or 'come_apart' not in results:
    return busy
  return max(0.0, 2 - 1 / busy)


def _alone_to_both(results):
  """What one worker alone takes, to one beside another: for a step, a call.

  Both are those of the machine, and so of all links.
  """
  every = [local / alone for link in cells.LINKS for alone, local in zip(
      figures.rounds(results, link, cells.ALONE),
      figures.local_rounds(results, link, cells.ALONE))]
  step = statistics.median(every) if every else 1.0
  # What a step that calls takes more than a local one, in local ones.
  alone, both = ([
      local / calling - by for calling, local in zip(
          figures.rounds(results, cells.LINKS[0], name),
          figures.local_rounds(results, cells.LINKS[0], name))]
                 for name, by in ((cells.CALLING_ALONE, step),
                                  (cells.CALLING.name, 1.0)))
  return step, (statistics.median(alone) / statistics.median(both)
                if alone and both else step)


def _more_of_the_kernel(results, link, cell, slower):
  """Seconds of a period, of the worker's and the server's kernel."""
  taken = [figures.processors_ms(results, each, cell.name)
           for each in (link, cells.LINKS[0])]
  if not all(taken) or not all(each[2:] for each in taken):
    return 0.0
  on_link, unshaped = (each[2] for each in taken)
  return max(0.0, cell.period * (on_link - unshaped * slower) / 1e3)


def _secs(cluster: network_times.Cluster, cell: cells.Cell) -> float:
  if not cell.period:
    return cluster.step_secs
  if cell.name in cells.RINGS + cells.OF_HOROVOD:
    return network_times.ring_secs(
        cluster, 'float16' if cell.name == cells.IN_HALVES else None)
  if not cell.exchange:
    return network_times.server_secs(cluster, cell.name == cells.SYNC)
  settings = cells.EXCHANGES[cell.exchange]
  if 'overlap' in settings:  # Whose steps call no server: c is of the step.
    cluster = dataclasses.replace(
        cluster, step_secs=cluster.step_secs + cluster.call_secs)
  return network_times.elastic_secs(
      cluster, cell.period, settings.get('overlap', False),
      settings.get('exchange_dtype'))


def host_costs(results: figures.Results,
               cell: cells.Cell) -> tuple[float, float]:
  """Returns h and c of `network_times`, of steps without a shaped link.

  There t steps of elastic averaging take t * (s + c) + h: two periods tell both
  of them, the longest and the shortest; with overlap, where the shortest lasts
  as long as what is beside it, the next one. c is the mean of all types. Other
  steps take s + h.

  Args:
    results: What has been measured so far.
    cell: A cell.
  """
  unshaped = cells.LINKS[0]

  def more(name, period=1):
    """What `period` steps take more than local ones; None: not measured."""
    every = figures.rate(results, unshaped, name)
    local = figures.local_rate(results, unshaped, name)
    return period / every - period / local if every and local else None

  if not cell.exchange:
    return max(0.0, more(cell.name) or 0.0), 0.0
  last, costs = cells.PERIODS[-1], {}
  for is_beside, first in enumerate(cells.PERIODS[:2]):
    ends = {exchange: [more(cells.elastic(period, exchange).name, period)
                       for period in (first, last)]
            for exchange, settings in cells.EXCHANGES.items()
            if is_beside == ('overlap' in settings)}
    if None in itertools.chain(*ends.values()):
      return 0.0, 0.0
    call = max(0.0, statistics.mean((long - short) / (last - first)
                                    for short, long in ends.values()))
    costs.update({exchange: (max(0.0, short - first * call), call)
                  for exchange, (short, _) in ends.items()})
  return costs[cell.exchange]


def _lines(results) -> Iterator[str]:
  about = results['about']
  links = [link for link in cells.LINKS if link.name in results['links']]
  yield (f'Two workers and a parameter server, each in a network namespace of '
         f'its own. The model is an MLP of '
         f'{results["model_bytes"] / 1e6:.2f} MB, with 32 rows a step, seed '
         f'{results["seed"]}. "Unshaped" is without a limit of the rate. Each '
         'figure is the steps per second of one worker: the median of all '
         'rounds, with the least and the largest. '
         'For workers that push gradients to a server it is the mean of the '
         'rounds, because the workers begin with another offset in each round. '
         'The row "elastic steps of one worker alone" is '
         f'{cells.CALLING.exchange}, with period {cells.CALLING.period}. '
         f'{_apart(results, links)} '
         'The hosts share the processors of the machine. '
         f'`make bench-network{" ARGS=--quick" * results["is_quick"]}` '
         f'on {machine.sentence(about)}{_added(results)}')
  yield from page_part.table(
      'steps/s', [link.name for link in links],
      [(name, [figures.shown(results, link, name) for link in links])
       for name in (cells.LOCAL, *cells.ALONE_STEPS, *cells.ON_SERVER,
                    cells.SYNC, *cells.RINGS, *cells.OF_HOROVOD)])
  for link in links:
    yield from page_part.table(
        f'{link.name}, elastic averaging', list(cells.EXCHANGES),
        [(f'period {period}', [
            figures.shown(results, link, cells.elastic(period, exchange).name)
            for exchange in cells.EXCHANGES])
         for period in sorted((*cells.PERIODS, cells.HIDING_PERIOD))])
  yield from _programs(results, links)
  yield from _moved(results, links)
  yield from _processors(results, links)
  yield from aims.lines(results)
  yield from _off(results, links)
  if results['not_run']:
    yield from ('', f'Not run: {"; ".join(results["not_run"])}.')


def _added(results):
  return ''.join(
      f' Rounds added at commit {each["about"]["commit"]}, with --add: '
      f'{", ".join(each["cells"])}.' for each in results.get('added', ()))


def _apart(results, links):
  if 'come_apart' not in results:
    return ('Elastic averaging is measured in its first exchanges, in '
            'which workers have not come apart yet.')
  limits = ', '.join(f'{link.apart_secs:g} s on {link.name}' for link in links
                     if link.apart_secs)
  return ('On shaped links the workers of elastic averaging begin half a '
          'period apart, as in a long training. The measurement begins after '
          f'the time of {results["come_apart"]} exchanges. The limit of this '
          f'time is {limits}.')


def _programs(results, links):
  rows = []
  for period in cells.PROGRAM_PERIODS:
    names = [cells.program_cell(whose, period)
             for whose in (cells.CONTRIB, cells.AS_CONTRIB)]
    rows += [(name, [figures.shown(results, link, name) for link in links])
             for name in names]
  if any(value for _, values in rows for value in values):
    yield from ('', 'One program, `benchmarks/contrib_reference.py`, with '
                '`tf.contrib` on TensorFlow 1.15.5 and with tfplugin: two '
                'workers and a server, an MLP of 1.08 MB.')
    yield from page_part.table('steps/s', [link.name for link in links], rows)


def _moved(results, links):
  rows = []
  for cell in (*cells.STAYING_CELLS, *cells.HOROVOD_CELLS):
    moved = [figures.models_moved(results, link, cell.name) for link in links]
    if any(moved):
      rows.append((cell.name, [
          each and f'{each[0]:.3f}, {each[1]:.3f}' for each in moved]))
  yield from ('', 'Bytes on a worker\'s network interface in an exchange, '
              'divided by the bytes of the model: sent, received. The kernel '
              'counts one header for up to 64 KB.')
  yield from page_part.table(
      'sent, received', [link.name for link in links], rows)


def _processors(results, links):
  rows = []
  for cell in cells.COSTED:
    shown = []
    for link in links:
      local, taken = (figures.processors_ms(results, link, name)
                      for name in (cells.LOCAL, cell.name))
      shown.append(local and taken and ', '.join(
          f'{cell.period * (ms - of_local):.1f}'
          for ms, of_local in zip(taken, local)))
    rows.append((cell.name, shown))
  yield from ('', 'Processor time that an exchange adds to local steps: on the '
              'worker, on the server and, if it was measured, in the kernel:')
  yield from page_part.table('ms', [link.name for link in links], rows)


def _off(results, links):
  yield from ('', 'The error of the prediction of `tfplugin-plan`, relative to '
              'the measurement. The prediction uses the local steps next to '
              'each round, because the speed of the machine changes, and the '
              'kernel time on the link:')
  yield from errors(results, links)


def errors(results: figures.Results, links: Sequence[cells.Link],
           heading: str = 'predicted') -> Iterator[str]:
  """Yields the table of the errors of the prediction.

  Args:
    results: What was measured.
    links: The links that it was measured on.
    heading: The heading of its first column.
  """
  shaped, rows = [link for link in links if link.mbit is not None], []
  for cell in _EVERY[1:]:
    off = []
    for link in shaped:
      measured = figures.rate(results, link, cell.name)
      secs = foreseen_secs(results, link, cell)
      off.append(measured and secs and
                 f'{cell.period / secs / measured - 1:+.1%}')
    if any(off):
      rows.append((cell.name, off))
  yield from page_part.table(
      heading, [link.name for link in shaped], rows)


PART = page_part.PagePart(
    'network', 'On a network, measured',
    'Not measured yet: `make bench-network`, as root on Linux, writes this '
    'part.', _lines)
PICTURE = 'pictures/network_periods.png'


def _curves(results: figures.Results) -> Iterator[str]:
  del results
  yield ('The picture shows steps per second of each of two workers, by '
         'the period and the settings of the exchange, on links of several '
         'rates. [Speed](../speed.md#on-a-network-measured) has the machine '
         'and all figures.')
  yield ''
  yield f'![Steps per second by the period](../{PICTURE})'


WRAPPER = page_part.PagePart(
    'network', '', PART.not_yet, _curves,
    page_part.PAGE.parent / 'wrappers' / 'elastic_averaging.md')


def write(results: figures.Results | None = None) -> None:
  """Writes the file of results, if they are given, and all pages.

  Args:
    results: What `make bench-network` measured.
  """
  PART.write(results)
  WRAPPER.write()


if __name__ == '__main__':
  write()
