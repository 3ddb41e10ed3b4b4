# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of aims, by hand and from the file of results."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

from __future__ import annotations

import numpy as np

from benchmarks import page_part
from benchmarks.network import aims
from benchmarks.network import cells
from benchmarks.network import page


def _results(**cells_of_link):
  """The rates of rounds, and the worker's and the server's ms of a step."""
  return {'num_worker': 2, 'come_apart': 40, 'about': {'cores': 2}, 'links': {
      aims.LINK.name: {name: {
          'steps_per_sec': [[rate, rate] for rate in rates],
          'processors_ms': [ms and [*ms, 1.0] for _ in rates]}
                       for name, (rates, ms) in cells_of_link.items()}}}


def test_by_hand():
  """Two workers, two cores: 5 + 1 ms at 125 steps/s are three quarters."""
  both, plain = (cells.elastic(10, exchange).name
                 for exchange in ('overlap, float16', 'plain'))
  found = list(aims.lines(_results(**{
      both: ([125.0, 125.0], (5.0, 1.0)), plain: ([50.0, 62.5], (6.0, 2.0))})))
  # Half-way from 50 to 62.5 steps/s, of 8 ms.
  assert found[-1] == (
      f'| {both}, to {plain} | 2.25 (2 to 2.5) | >= 2.2 | yes | 75% | 45% |')
  assert len(found) == 6
  found = list(aims.lines(_results(**{
      both: ([100.0], None), plain: ([50.0], None)})))
  assert found[-1] == (
      f'| {both}, to {plain} | 2 (2 to 2) | >= 2.2 | no | - | - |')


def test_a_cell_that_was_added_is_compared_with_the_rounds_beside_it():
  found = list(aims.lines(_results(**{
      cells.CROSS_SHARD: ([99.0, 10.0, 20.0], None),
      cells.IN_HALVES: ([18.0, 30.0], None)})))[-1]
  assert '| 1.65 (1.5 to 1.8) | >= 1.8 | no |' in found


def test_local_steps_are_those_next_to_the_cell():
  name = cells.elastic(cells.HIDING_PERIOD, 'overlap').name
  results = _results(**{name: ([90.0], None), cells.LOCAL: ([50.0], None)})
  found = list(aims.lines(results))[-1]
  assert found.startswith(f'| {name}, to {cells.LOCAL} | 1.8 ')
  results['links'][aims.LINK.name][name]['local_steps_per_sec'] = [[90., 110.]]
  found = list(aims.lines(results))[-1]
  assert found.startswith(
      f'| {name}, to {cells.LOCAL} | 0.9 (0.9 to 0.9) | >= 0.88 | yes |')


def test_without_what_they_are_said_of_there_is_nothing():
  assert not list(aims.lines(_results()))
  name = cells.elastic(cells.HIDING_PERIOD, 'overlap').name
  results = _results(**{name: ([90.0], None), cells.LOCAL: ([50.0], None)})
  assert list(aims.lines(results))
  del results['come_apart']
  assert not list(aims.lines(results))


def test_the_page_has_the_ratios_of_the_results():
  """Anew from the numbers of the file, of all aims that are measured."""
  results = page.PART.read()
  text = page_part.PAGE.read_text(encoding='utf-8')
  if results is None or 'come_apart' not in results:
    assert 'The aims at' not in text
    return
  measured = results['links'][aims.LINK.name]
  for first, second, aim in aims.AIMS:
    if first not in measured:  # A new cell, until it is measured.
      continue
    row = next(line for line in text.splitlines()
               if line.startswith(f'| {first}, to {second} |'))
    rounds = [measured[first]['steps_per_sec'],
              measured[first].get('local_steps_per_sec',
                                  measured[second]['steps_per_sec'])
              if second == cells.LOCAL else measured[second]['steps_per_sec']]
    one, other = (np.mean(each, axis=1) for each in rounds)
    last = min(len(one), len(other))
    ratio = np.median(one[-last:] / other[-last:])
    shown = row.split('|')[2:5]
    np.testing.assert_allclose(float(shown[0].split()[0]), ratio,
                               rtol=1e-3)
    assert [each.strip() for each in shown[1:]] == [
        f'>= {aim:g}', 'yes' if ratio >= aim else 'no']
