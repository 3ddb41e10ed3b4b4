# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/speed.md are those of benchmarks/results/network.json."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib import image

from benchmarks import page_part
from benchmarks.network import cells
from benchmarks.network import figures
from benchmarks.network import page
from benchmarks.network import pictures
from tfplugin.bin import network_times

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')


def _figures(*rounds, bytes_moved=None, processors_ms=None):
  return {'steps_per_sec': [list(each) for each in rounds],
          'bytes': [bytes_moved] * len(rounds),
          'processors_ms': processors_ms or [None] * len(rounds)}


# Of a model of 1 MB on a link of 1000 Mbit/s.
_BY_HAND = {
    'about': _ABOUT, 'seed': 0, 'model_bytes': 1_000_000, 'num_worker': 2,
    'largest_part': 0.5, 'is_quick': True, 'not_run': ['what is not'],
    'links': {'1000 Mbit/s': {
        cells.LOCAL: _figures(
            (99.0, 101.0), (89.0, 91.0), (120.0, 120.0),
            processors_ms=[[3.0, 0.0, 0.25], [3.5, 0.25, 0.5],
                           [4.0, 0.5, 0.75]]),
        cells.ASYNC: _figures((20.0, 30.0), (35.0, 40.0),
                              bytes_moved=[1.1e6, 1.2e6]),
        'elastic, period 10, overlap': _figures(
            (50.0, 50.0), (70.0, 70.0), bytes_moved=[5e5, 1e6],
            processors_ms=[[5.0, 1.0, 2.0], [7.0, 0.5, 3.0]]),
        cells.CROSS_SHARD: _figures((40.0, 40.0))}}}


def _tables(text):
  """The cells of all tables, by the corner, the row and the column."""
  found, corner = {}, None
  for line in text.splitlines():
    parts = [part.strip() for part in line.strip('|').split('|')]
    if not line.startswith('|'):
      corner = None
    elif corner is None:
      corner, *columns = parts
    elif set(line) != {'|', '-'}:
      found.update({(corner, parts[0], column): value
                    for column, value in zip(columns, parts[1:])})
  return found


def test_figures_by_hand():
  """The mean of the workers of each round: 100, 90, 120; 40, 80 / 3 ms."""
  text = page.PART.section(_BY_HAND)
  found = _tables(text)
  link = '1000 Mbit/s'
  assert found['steps/s', cells.LOCAL, link] == '100 (90 to 120)'
  assert found['steps/s', cells.ASYNC, link] == '30 (25 to 37.5)'
  assert found['steps/s', 'clipping', link] == '-'
  corner = f'{link}, elastic averaging'
  assert found[corner, 'period 10', 'overlap'] == '60 (50 to 70)'
  assert found[corner, 'period 10', 'plain'] == '-'
  assert found['sent, received', cells.ASYNC, link] == '1.100, 1.200'
  # 10 steps hide 3 messages of the model of 8.4 ms; a ring adds one of them.
  step = 1 / 100
  assert found['predicted', 'elastic, period 10, overlap', link] == (
      f'{1 / step / 60 - 1:+.1%}')
  message = 8e6 / (1e9 * 1448 / 1514)
  assert found['predicted', cells.CROSS_SHARD, link] == (
      f'{1 / (step + message) / 40 - 1:+.1%}')
  # Ten steps of 6 - 3.5, of 0.75 - 0.25 and of 2.5 - 0.5 ms.
  assert found['ms', 'elastic, period 10, overlap', link] == '25.0, 5.0, 20.0'
  assert found['ms', 'elastic, period 10, plain', link] == '-'
  assert 'Not run: what is not.' in text
  assert 'in its first exchanges' in text
  assert 'the time of 20 exchanges' in page.PART.section(
      dict(_BY_HAND, come_apart=20))
  assert 'seed 0' in text and 'commit abc' in text and 'ARGS=--quick' in text
  assert 'Rounds added at commit def, with --add: one, another.' in (
      page.PART.section(dict(_BY_HAND, added=[{
          'about': dict(_ABOUT, commit='def'), 'cells': ['one', 'another']}])))


# Of local steps of 10 ms, where no link is shaped: c and h by exchange.
_HOST_MS = {'plain': (2.0, 28.0), 'float16': (2.0, 18.0), 'int8': (2.0, 8.0),
            'overlap': (0.5, 30.0), 'overlap, float16': (0.5, 20.0),
            'overlap, int8': (0.5, 9.0)}


def _with_hosts(mbit=1000, **link):
  """Results of which no link is shaped, and of a link."""
  unshaped = {cells.LOCAL: _figures((100.0, 100.0)),
              cells.CROSS_SHARD: _figures((20.0, 20.0))}
  for exchange, (call, host) in _HOST_MS.items():
    for period in (1, 10, 100):
      # With overlap a period of 1 is shorter than what is beside it.
      if period > 1 or 'overlap' not in exchange:
        rate = 1e3 * period / (period * (10 + call) + host)
        unshaped[cells.elastic(period, exchange).name] = _figures((rate, rate))
  return dict(_BY_HAND, links={'unshaped': unshaped, f'{mbit} Mbit/s': {
      name: _figures((rate, rate)) for name, rate in link.items()}})


@pytest.mark.parametrize('exchange', cells.EXCHANGES)
def test_what_hosts_take_is_that_without_a_shaped_link(exchange):
  results = _with_hosts()
  call, host = _HOST_MS[exchange]
  np.testing.assert_allclose(
      page.host_costs(results, cells.elastic(32, exchange)),
      (host / 1e3, call / 1e3), rtol=1e-9, atol=1e-12)
  np.testing.assert_allclose(
      page.host_costs(results, cells.Cell(cells.CROSS_SHARD)), (0.04, 0.0))
  assert page.host_costs(_BY_HAND, cells.elastic(1, exchange)) == (0.0, 0.0)


@pytest.mark.parametrize('exchange', cells.EXCHANGES)
@pytest.mark.parametrize('period', cells.PERIODS)
@pytest.mark.parametrize('alone_to_both', (None, 0.5))
@pytest.mark.parametrize('mbit', (1000, 100))
@pytest.mark.parametrize('is_apart', (False, True))
def test_what_is_foreseen_is_the_equations_with_what_hosts_take(
    exchange, period, alone_to_both, mbit, is_apart):
  """Steps are 1 / 50 s where the other works, too, and 1 / 80 s alone.

  So are calls and what a communication takes; or half of that, of which a
  period of 100 plain steps has 100 * 2 + 28 ms beside local steps of 10 ms.
  """
  link = next(link for link in cells.LINKS if link.mbit == mbit)
  cell = cells.elastic(period, exchange)
  results = _with_hosts(mbit, **{cells.LOCAL: 50.0, cells.ALONE: 80.0})
  if alone_to_both:
    rate = 100 / (100 * 0.01 * 50 / 80 + alone_to_both * 0.228)
    results['links']['unshaped'][cells.CALLING_ALONE] = _figures((rate,))
  if is_apart:
    results['come_apart'] = 40
  secs = page.foreseen_secs(results, link, cell)
  # Local steps without a shaped link are twice as fast, and so are the hosts.
  call, host = (2 * each / 1e3 for each in _HOST_MS[exchange])

  overlaps = 'overlap' in exchange

  def slowed(part, alone):
    return part + (1 - part) * alone

  def secs_of(part):
    """Of a period, where the other works in that part of what one works in."""
    steps, calls = (slowed(part, alone)
                    for alone in (50 / 80, alone_to_both or 50 / 80))
    cluster = network_times.Cluster(
        1e6, steps / 50 + calls * call * overlaps,
        mbit * 1e6 / 8 * network_times.PAYLOAD, 2, largest_part=0.5,
        host_secs=calls * host, call_secs=calls * call)
    works = period * steps / 50 + calls * (period * call + host)
    return works, max(works, network_times.elastic_secs(
        cluster, period, overlaps,
        cells.EXCHANGES[exchange].get('exchange_dtype')))

  def too_much(part):
    """That part less what follows of it."""
    works, every = secs_of(part)
    return part - (max(0.0, 2 * works - every) / works if is_apart else
                   works / every)

  # By chance it is the part of all time; by turns, what two have too much for
  # the time. The largest that agrees with itself.
  parts = np.linspace(1, 0, 501)
  after = next((i for i, part in enumerate(parts) if too_much(part) <= 1e-12))
  low, high = parts[after], parts[max(0, after - 1)]
  for _ in range(30):
    middle = (low + high) / 2
    low, high = (middle, high) if too_much(middle) <= 0 else (low, middle)
  np.testing.assert_allclose(secs, secs_of(low)[1], rtol=1e-4)


def test_workers_that_have_come_apart_work_by_turns():
  """Ten steps of 80 a second, of one alone, and 1.6 messages of 50 Mbit/s."""
  link = next(link for link in cells.LINKS if link.mbit == 50)
  results = dict(
      _with_hosts(50, **{cells.LOCAL: 50.0, cells.ALONE: 80.0}),
      largest_part=0.6)
  cell, faster = cells.elastic(10, 'plain'), 50 / 80
  call, host = (2 * faster * each / 1e3 for each in _HOST_MS['plain'])
  by_hand = 10 * (1 / 80 + call) + host / 2 + 1.6 * 8 / 50 * 1514 / 1448
  by_chance = page.foreseen_secs(results, link, cell)
  apart = page.foreseen_secs(dict(results, come_apart=40), link, cell)
  np.testing.assert_allclose(apart, by_hand, rtol=5e-3)  # And latency.
  assert by_chance > 1.05 * apart


def test_the_speed_of_the_machine_is_that_next_to_the_cell():
  """Half of it for the cell of 1,000 ms: it takes twice as long all in all."""
  link = next(link for link in cells.LINKS if link.mbit == 1000)
  cell = cells.elastic(100, 'overlap')
  results = _with_hosts(**{cells.LOCAL: 100.0, cell.name: 90.0})
  before = page.foreseen_secs(results, link, cell)
  measured = results['links'][link.name][cell.name]
  measured['local_steps_per_sec'] = [[45.0, 55.0]]
  np.testing.assert_allclose(
      page.foreseen_secs(results, link, cell), 2 * before)
  assert page.foreseen_secs(
      results, link, cells.elastic(32, 'overlap')) < before


def test_what_more_the_kernel_takes_counts_where_nothing_else_is_waited_for():
  """Ten ms for a period of 100; on a full link it is beside the wire."""
  link = next(link for link in cells.LINKS if link.mbit == 1000)
  hidden, waiting = cells.elastic(100, 'overlap'), cells.elastic(1, 'plain')
  results = _with_hosts(**{cells.LOCAL: 100.0, hidden.name: 90.0,
                           waiting.name: 20.0})
  before = [page.foreseen_secs(results, link, cell)
            for cell in (hidden, waiting)]
  for cell in (hidden, waiting):
    for name, kernel in (('unshaped', 0.2),
                         (link.name, 0.2 + 10 / cell.period)):
      results['links'][name][cell.name]['processors_ms'] = [[9.0, 1.0, kernel]]
  after = [page.foreseen_secs(results, link, cell)
           for cell in (hidden, waiting)]
  call, host = _HOST_MS['overlap']
  np.testing.assert_allclose(before[0], (100 * (10 + call) + host) / 1e3)
  np.testing.assert_allclose(after[0], before[0] + 0.01)
  # All that it has of the processors is 10 + 2 + 28 + 10 ms.
  np.testing.assert_allclose(after[1], max(before[1], 0.05), rtol=1e-3)


@pytest.mark.parametrize('link', cells.LINKS[1:], ids=lambda link: link.name)
def test_what_is_foreseen_is_within_10_percent_of_what_is_measured(link):
  """Of every cell; c and h are those of the links that are not shaped.

  Rounds differ by as much (20.0 to 22.6 steps/s), so the nearest counts; of
  gradients, whose rounds differ by design, the mean.
  An exchange in each step is in parts: it may take up to three tenths more, as
  the page says, if both workers continue to meet.
  """
  results = page.PART.read()
  if (results is None or link.name not in results['links'] or
      'come_apart' not in results):
    pytest.skip(f'Not measured on {link.name} after workers have come apart: '
                '`make bench-network`.')
  off = {}
  for cell in (*cells.STAYING_CELLS, *cells.HOROVOD_CELLS):
    rate = figures.rate(results, link, cell.name)
    secs = cell.period and rate and page.foreseen_secs(results, link, cell)
    if secs:
      foreseen = cell.period / secs
      rounds = [rate] if cell.name in cells.ON_SERVER else figures.rounds(
          results, link, cell.name)
      off[cell] = foreseen / np.clip(foreseen, min(rounds), max(rounds)) - 1
  assert len(off) >= len(cells.selected(
      link, cells.STAYING_CELLS, results['is_quick'])) - 2
  assert not {cell.name: f'{each:+.1%}' for cell, each in off.items() if not (
      -0.1 < each < (0.3 if cell.exchange and cell.period == 1 else 0.1))}


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  assert page.PART.written(text, page.PART.read()) == text
  assert page.PART.written(text, _BY_HAND) != text


def test_the_page_of_elastic_averaging_has_the_curves():
  part = page.WRAPPER
  text = part.page.read_text(encoding='utf-8')
  assert part.written(text, part.read()) == text
  if part.read() is not None:
    assert (page_part.PAGE.parent / page.PICTURE).exists()
  assert f'](../{page.PICTURE})' in part.section(_BY_HAND)


def test_curves_of_the_figures(tmp_path):
  """Two links fit a column, a third begins a row; equal figures look equal."""
  for name in 'ab':
    pictures.write(_BY_HAND, tmp_path / name)
  one, other = ((tmp_path / name / page.PICTURE).read_bytes() for name in 'ab')
  assert one == other
  every = dict(_BY_HAND, links={link.name: _BY_HAND['links']['1000 Mbit/s']
                                for link in cells.LINKS[:3]})
  pictures.write(every, tmp_path / 'b')
  sizes = [image.imread(tmp_path / name / page.PICTURE).shape for name in 'ab']
  assert sizes[0][1] == sizes[1][1] == 750  # The column of a page.
  assert sizes[0][0] < sizes[1][0]


def test_every_figure_of_the_page_follows_from_the_results():
  """Anew from the numbers of the file, by other means than the page's."""
  results = page.PART.read()
  if results is None:
    assert 'Not measured yet: `make bench-network`' in page_part.PAGE.read_text(
        encoding='utf-8')
    return
  found = _tables(page_part.PAGE.read_text(encoding='utf-8'))
  seen = 0
  for link, measured in results['links'].items():
    for name, of_cell in measured.items():
      match = re.fullmatch(r'elastic, (period \d+), (.*)', name)
      shown = (found[f'{link}, elastic averaging', match[1], match[2]]
               if match else found['steps/s', name, link])
      rounds = np.mean(of_cell['steps_per_sec'], axis=1)
      middle = (1 / np.mean(1 / rounds) if name in cells.ON_SERVER else
                np.median(rounds))
      expected = [middle, rounds.min(), rounds.max()]
      np.testing.assert_allclose(
          [float(n) for n in re.findall(r'[\d.e+]+', shown)], expected,
          rtol=1e-3)
      moved = [each for each in of_cell['bytes'] if each]
      if moved:
        np.testing.assert_allclose(
            [float(n) for n in found['sent, received', name, link].split(',')],
            np.median(moved, axis=0) / results['model_bytes'], atol=6e-4)
      seen += 1
  assert seen > 20


def test_without_results_the_page_says_so():
  assert 'Not measured yet: `make bench-network`' in page.PART.section(None)


def test_cells_have_names_of_their_own():
  every = [cell.name for cell in
           cells.STAYING_CELLS + cells.HOROVOD_CELLS] + [
               cells.program_cell(whose, period) for period in
               cells.PROGRAM_PERIODS
               for whose in (cells.CONTRIB, cells.AS_CONTRIB)]
  assert len(set(every)) == len(every) == 6 + 4 * 6 + 2 + 1 + 3 + 2 + 6
  assert cells.MODEL_BYTES == 4 * (785 * 1024 + 1025 * 1024 + 1025 * 10)


@pytest.mark.parametrize('link', cells.LINKS, ids=lambda link: link.name)
def test_a_quick_selection_is_a_part(link):
  every = cells.STAYING_CELLS
  assert cells.selected(link, every, is_quick=False) == [
      cell for cell in every
      if cell.name != cells.CALLING_ALONE or link.name == 'unshaped']
  quick = cells.selected(link, every, is_quick=True)
  plain = {f'elastic, period {period}, plain' for period in cells.PERIODS}
  assert plain | {cells.LOCAL, cells.ALONE, cells.ASYNC} <= {
      cell.name for cell in quick} <= {cell.name for cell in every}
  # Each word of it is one of a name.
  assert all(any(words in cell.name for cell in every) for words in link.quick)
