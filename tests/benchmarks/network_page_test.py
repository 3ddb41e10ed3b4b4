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
from benchmarks.network import page
from benchmarks.network import pictures
from tfplugin.ops import network_times

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')


def _figures(*rounds, bytes_moved=None):
  return {'steps_per_sec': [list(each) for each in rounds],
          'bytes': [bytes_moved] * len(rounds)}


# Of a model of 1 MB on a link of 1000 Mbit/s.
_BY_HAND = {
    'about': _ABOUT, 'seed': 0, 'model_bytes': 1_000_000, 'num_worker': 2,
    'is_quick': True, 'not_run': ['what is not'], 'links': {'1000 Mbit/s': {
        cells.LOCAL: _figures((99.0, 101.0), (89.0, 91.0), (120.0, 120.0)),
        cells.ASYNC: _figures((20.0, 30.0), bytes_moved=[1.1e6, 1.2e6]),
        'elastic, period 10, overlap': _figures(
            (50.0, 50.0), (70.0, 70.0), bytes_moved=[5e5, 1e6]),
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
  """The mean of the workers of each round: 100, 90, 120 or 10, 11.1, 8.3 ms."""
  text = page.PART.section(_BY_HAND)
  found = _tables(text)
  link = '1000 Mbit/s'
  assert found['steps/s', cells.LOCAL, link] == '101.9 (90 to 120)'
  assert found['steps/s', cells.ASYNC, link] == '25 (25 to 25)'
  assert found['steps/s', 'clipping', link] == '-'
  corner = f'{link}, elastic averaging'
  assert found[corner, 'period 10', 'overlap'] == '58.33 (50 to 70)'
  assert found[corner, 'period 10', 'plain'] == '-'
  assert found['models', cells.ASYNC, link] == '1.100, 1.200'
  # 10 steps hide 3 messages of the model of 8.4 ms; a ring adds one of them.
  step = (1 / 100 + 1 / 90 + 1 / 120) / 3
  assert found['predicted', 'elastic, period 10, overlap', link] == (
      f'{1 / step / (350 / 6) - 1:+.1%}')
  message = 8e6 / (1e9 * 1448 / 1514)
  assert found['predicted', cells.CROSS_SHARD, link] == (
      f'{1 / (step + message) / 40 - 1:+.1%}')
  assert 'Not run: what is not.' in text
  assert 'seed 0' in text and 'commit abc' in text and 'ARGS=--quick' in text


def test_what_hosts_take_is_that_without_a_shaped_link():
  """Steps of 10 ms and c of 2 ms; h of 28, 18 and 8 ms."""
  unshaped = {cells.LOCAL: _figures((100.0, 100.0)),
              cells.CROSS_SHARD: _figures((20.0, 20.0))}
  for exchange, host_secs in zip(cells.WITHOUT_OVERLAP, (0.028, 0.018, 0.008)):
    for period in (1, 100):
      rate = period / (period * 0.012 + host_secs)
      unshaped[cells.elastic(period, exchange).name] = _figures((rate, rate))
  link = next(link for link in cells.LINKS if link.mbit == 1000)
  results = dict(_BY_HAND, links={
      'unshaped': unshaped, link.name: {cells.LOCAL: _figures((50.0, 50.0))}})
  assert page.host_costs(_BY_HAND, cells.elastic(1, 'plain')) == (0.0, 0.0)
  for exchange in ('float16', 'overlap, float16'):
    np.testing.assert_allclose(
        page.host_costs(results, cells.elastic(32, exchange)), (0.018, 0.002),
        rtol=1e-9)
  np.testing.assert_allclose(
      page.host_costs(results, cells.Cell(cells.CROSS_SHARD)), (0.04, 0.0))
  cluster = network_times.Cluster(
      1e6, 1 / 50, 1e9 / 8 * network_times.PAYLOAD, 2, host_secs=0.008,
      call_secs=0.002)
  for exchange in ('int8', 'overlap, int8'):
    np.testing.assert_allclose(
        page.foreseen_secs(results, link, cells.elastic(10, exchange)),
        network_times.elastic_secs(cluster, 10, 'overlap' in exchange, 'int8'),
        rtol=1e-9)


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
  """A panel for each link that was measured; the same figures are the same."""
  for name in 'ab':
    pictures.write(_BY_HAND, tmp_path / name)
  one, other = ((tmp_path / name / page.PICTURE).read_bytes() for name in 'ab')
  assert one == other
  both = dict(_BY_HAND, links={**_BY_HAND['links'],
                               'unshaped': _BY_HAND['links']['1000 Mbit/s']})
  pictures.write(both, tmp_path / 'b')
  sizes = [image.imread(tmp_path / name / page.PICTURE).shape for name in 'ab']
  assert sizes[1][:2] == (sizes[0][0], 2 * sizes[0][1])


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
    for name, figures in measured.items():
      match = re.fullmatch(r'elastic, (period \d+), (.*)', name)
      shown = (found[f'{link}, elastic averaging', match[1], match[2]]
               if match else found['steps/s', name, link])
      rounds = np.mean(figures['steps_per_sec'], axis=1)
      expected = [1 / np.mean(1 / rounds), rounds.min(), rounds.max()]
      np.testing.assert_allclose(
          [float(n) for n in re.findall(r'[\d.e+]+', shown)], expected,
          rtol=1e-3)
      moved = [each for each in figures['bytes'] if each]
      if moved:
        np.testing.assert_allclose(
            [float(n) for n in found['models', name, link].split(',')],
            np.median(moved, axis=0) / results['model_bytes'], atol=6e-4)
      seen += 1
  assert seen > 20


def test_without_results_the_page_says_so():
  assert 'Not measured yet: `make bench-network`' in page.PART.section(None)


def test_cells_have_names_of_their_own():
  every = [cell.name for cell in
           cells.CELLS + cells.RING_CELLS + cells.HOROVOD_CELLS] + [
               cells.program_cell(whose, period) for period in
               cells.PROGRAM_PERIODS
               for whose in (cells.CONTRIB, cells.AS_CONTRIB)]
  assert len(set(every)) == len(every) == 5 + 4 * 6 + 2 + 2 + 6
  assert cells.MODEL_BYTES == 4 * (785 * 1024 + 1025 * 1024 + 1025 * 10)


@pytest.mark.parametrize('link', cells.LINKS, ids=lambda link: link.name)
def test_a_quick_selection_is_a_part(link):
  every = cells.CELLS + cells.RING_CELLS
  assert cells.selected(link, every, is_quick=False) == list(every)
  quick = cells.selected(link, every, is_quick=True)
  assert {cells.LOCAL, cells.ASYNC, 'elastic, period 10, plain'} <= {
      cell.name for cell in quick} <= {cell.name for cell in every}
  # Each word of it is one of a name.
  assert all(any(words in cell.name for cell in every) for words in link.quick)
