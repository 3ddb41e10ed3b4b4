# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Histograms and dropped fractions of gradients whose staleness is known."""

import json

import pytest

from tests.report import hand_written
from tfplugin.report import staleness
from tfplugin.report.reading import run_data

event = hand_written.event


def _measure(tmp_path):
  return staleness.measure(run_data.read(tmp_path))


def test_sessions_with_several_bounds_have_none(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  (tmp_path / 'train_options-1.json').write_text(json.dumps(
      {'wrapper': 'drop_stale', 'staleness': 7}))
  hand_written.write_events(tmp_path, hand_written.event(
      50, 'chief:0', 'starting', 'begin', pid=9)._replace(session=2))
  section = staleness.measure(run_data.read(tmp_path))
  assert section['bound'] is None
  assert section['missing'] == ['The bound: the sessions have different ones.']


def test_histograms_and_the_bound(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  section = _measure(tmp_path)
  assert section['bound'] == 2
  told = section['by_worker']
  assert told['at_least'] == [0, 1, 2, 3]
  assert told['counts'] == {'chief:0': [1, 1, 0, 0], 'worker:0': [0, 1, 0, 1]}
  assert told['means'] == {'chief:0': 0.5, 'worker:0': 2.0}
  # Samples at 6, 26, 30 and 30 s: four parts of 6 s each.
  assert section['over_time']['times'] == [6, 12, 18, 24, 30]
  assert section['over_time']['counts'] == [
      [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 2, 0, 1]]


def test_values_that_are_not_finite_are_told(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  for task, values in (('chief:0', (1.0, float('nan'), 3.0)),
                       ('worker:0', (float('inf'),))):
    hand_written.write_samples(tmp_path, task, *(
        (at + 1, at, 0, {'staleness': value})
        for at, value in enumerate(values)))
  section = _measure(tmp_path)
  assert section['by_worker']['means'] == {'chief:0': 2.0}
  assert section['missing'][:2] == [
      'chief:0: 1 of 3 values of staleness are not finite.',
      'worker:0: 1 of 1 values of staleness are not finite.']
  staleness.draw(section)


def test_dropping_is_counted_for_each_worker_over_its_processes(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  section = _measure(tmp_path)
  worker, chief = (section['workers'][t] for t in ('worker:0', 'chief:0'))
  assert (worker['num_dropped'], worker['num_applied']) == (10, 20)
  assert worker['dropped_fraction'] == pytest.approx(1 / 3)
  assert worker['share_of_made'] == pytest.approx(30 / 200)
  assert worker['share_of_applied'] == pytest.approx(20 / 190)
  assert chief['dropped_fraction'] == 0
  assert (section['num_dropped'], section['num_made']) == (10, 200)
  assert section['dropped_fraction'] == 0.05
  assert section['missing'] == []


def test_stretches_of_few_gradients_are_joined(tmp_path):
  hand_written.write_events(tmp_path, *(
      event(secs, 'worker:0', 'dropping', num_dropped=d, num_applied=a)
      for secs, d, a in ((0, 1, 0), (5, 6, 18), (10, 7, 30), (15, 11, 46))))
  curve = _measure(tmp_path)['workers']['worker:0']['fraction']
  # 24 gradients until 5 s, and 33 more until 15 s.
  assert curve['x'] == [5, 15]
  assert curve['y'] == pytest.approx([6 / 24, 5 / 33])


def test_large_values_are_put_together(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  hand_written.write_scalars(tmp_path, 'staleness/staleness', (1, 1, 0),
                             (2, 2, 99), (3, 3, 2), (4, 4, 3))
  told = _measure(tmp_path)['by_worker']
  # 100 values in bins of 3.
  assert told['at_least'][:3] == [0, 3, 6] and len(told['at_least']) == 34
  counts = told['counts']['chief:0']
  assert (counts[:2], counts[33], sum(counts)) == ([2, 1], 1, 4)


def test_what_is_missing_is_said_with_its_remedy(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  missing = ' '.join(_measure(tmp_path)['missing'])
  assert 'StalenessSummaryHook' in missing and 'drop_stale' in missing
  hand_written.write_events(tmp_path, event(
      1, 'chief:0', 'dropping', num_dropped=0, num_applied=0))
  section = _measure(tmp_path)
  assert section['workers']['chief:0']['dropped_fraction'] is None
  assert 'bound' in section['missing'][1]
