# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Distances, spreads and moves of workers whose distances are known."""

import json
import math

import numpy as np
import pytest

from tests.report import hand_written
from tfplugin.report import elastic
from tfplugin.report.reading import run_data

event = hand_written.event


def _write(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'starting', 'begin'),
      event(5, 'chief:0', 'exchanging', num_exchanges=4),
      event(5, 'worker:0', 'exchanging', num_exchanges=3),
      event(9, 'worker:0', 'exchanging', pid=2, num_exchanges=2))
  hand_written.write_samples(
      tmp_path, 'worker:0', (2, 1, 0, {'elastic distance': 3.0}),
      (4, 2, 0, {'elastic distance': 1.0}))
  hand_written.write_samples(
      tmp_path, 'chief:0', (1, 1, 0, {'elastic distance': 2.0}),
      (3, 2, 0, {'elastic distance': 6.0}))


def test_distances_and_their_spread(tmp_path):
  _write(tmp_path)
  section = elastic.measure(run_data.read(tmp_path))
  worker = section['workers']['worker:0']
  assert worker['distance']['x'] == [2, 4]
  assert (worker['largest'], worker['last']) == (3.0, 1.0)
  # At 2 s 2 and 3; at 3 s 6 and 3; at 4 s 6 and 1.
  assert section['spread']['distance']['x'] == [2, 3, 4]
  assert section['spread']['distance']['y'] == [1, 3, 5]
  assert section['spread']['largest'] == 5
  assert section['num_exchanges'] == {'chief:0': 4, 'worker:0': 5}


@pytest.mark.parametrize('options, rate', [
    ({'moving_rate': 0.25}, 0.25),
    ({'moving_rate': None, 'communication_period': 10, 'workers': 2},
     0.9 / 10 / 3)])
def test_the_share_that_moves(tmp_path, options, rate):
  _write(tmp_path)
  hand_written.write_options(tmp_path, wrapper='elastic_average',
                             strategy='none', **options)
  section = elastic.measure(run_data.read(tmp_path))
  assert section['moving_rate'] == pytest.approx(rate)


def test_a_worker_of_an_earlier_session_has_no_part_in_the_spread(tmp_path):
  _write(tmp_path)
  hand_written.write_events(tmp_path, *(
      event(secs, task, 'starting', 'begin', pid=9)._replace(session=2)
      for secs, task in ((10, 'chief:0'), (10, 'worker:1'))))
  for task, *pairs in (('chief:0', (11, 2.0), (13, 2.5)),
                       ('worker:1', (12, 2.25))):
    hand_written.write_events(tmp_path, *(
        hand_written.sample(secs, task, 9, 0, {'elastic distance': value}, pid=9
                            )._replace(session=2) for secs, value in pairs))
  curve = elastic.measure(run_data.read(tmp_path))['spread']['distance']
  assert (curve['x'], curve['y']) == ([2, 3, 4, 12, 13], [1, 3, 5, .25, .25])


def test_a_setting_that_differs_between_sessions_is_not_shown(tmp_path):
  _write(tmp_path)
  hand_written.write_events(tmp_path, event(
      10, 'chief:0', 'starting', 'begin', pid=9)._replace(session=2))
  options = {'wrapper': 'elastic_average', 'moving_rate': 0.25}
  hand_written.write_options(tmp_path, communication_period=8, **options)
  (tmp_path / 'train_options-1.json').write_text(json.dumps(
      {**options, 'communication_period': 4}))
  section = elastic.measure(run_data.read(tmp_path))
  assert section['moving_rate'] == 0.25
  assert section['communication_period'] is None


def test_groups_are_those_of_the_summaries(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  hand_written.write_scalars(tmp_path, 'elastic_distance/logits', (1, 1, 0.5))
  hand_written.write_scalars(tmp_path, 'elastic_distance', (1, 1, 2.0))
  section = elastic.measure(run_data.read(tmp_path))
  assert section['groups']['logits']['last'] == 0.5
  assert section['workers']['chief:0']['last'] == 2.0
  assert section['spread'] is None and section['moving_rate'] is None


def test_what_is_missing_is_said_with_its_remedy(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  section = elastic.measure(run_data.read(tmp_path))
  assert len(section['missing']) == 3
  assert 'ElasticDistanceHook' in section['missing'][0]


def test_the_spread_is_of_the_newest_of_each_worker(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  random = np.random.default_rng(3)
  told = {}
  for index in range(4):
    # Some times are those of another worker, too.
    times = np.sort(random.choice(40, 15, replace=False)) + 1
    told[f'worker:{index}'] = list(zip(times.tolist(),
                                       random.uniform(0, 9, 15).tolist()))
  told['worker:2'][7] = (told['worker:2'][7][0], math.nan)
  for task, pairs in told.items():
    hand_written.write_samples(tmp_path, task, *(
        (time, 1, 0, {'elastic distance': value}) for time, value in pairs))
  spread = elastic.measure(run_data.read(tmp_path))['spread']['distance']
  expected = {}
  for now in sorted({time for pairs in told.values() for time, _ in pairs}):
    newest = [[value for time, value in pairs if time <= now][-1:]
              for pairs in told.values()]
    if all(newest):
      values = [value for value, in newest]
      expected[now] = (None if any(map(math.isnan, values))
                       else max(values) - min(values))
  assert dict(zip(spread['x'], spread['y'])) == expected
  assert list(expected.values()).count(None) >= 1
