# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tfplugin-train tells twice a second is read."""

import json
import math

import pytest

from tests.report import hand_written
from tfplugin.events import record
from tfplugin.report.reading import run_data


def test_samples_are_found_among_the_events(tmp_path):
  event = hand_written.event
  hand_written.write_events(tmp_path, event(0, 'worker:1', 'starting', 'begin'))
  hand_written.write_samples(tmp_path, 'worker:1', (1, 10, 0.5, {'a': 3.0}),
                             (2, 20, math.nan, {}))
  run = run_data.read(tmp_path)
  lines = run.samples['worker:1']
  assert [(s.time - hand_written.START, s.step, s.figures) for s in lines] == [
      (1.0, 10, {'a': 3.0}), (2.0, 20, {})]
  assert lines[0].loss == 0.5 and math.isnan(lines[1].loss)
  assert [e.name for e in run.reading.events] == ['starting']
  assert run.points((), 'a') == {'worker:1': [(1.0, 3.0)]}


def test_a_run_without_them_has_none():
  assert record.samples_of([hand_written.event(0, 'chief:0', 'ended')]) == {}


def test_what_is_written_is_read():
  details = record.sample_details(
      step=7, num_steps=5, loss=math.inf,
      figures={'a': 0.5, 'b': math.nan}, counts={'c': 3})
  json.loads(json.dumps(details), parse_constant=pytest.fail)
  found = record.sample_of(
      hand_written.event(1, 'chief:0', 'sampling', **details))
  assert (found.step, found.num_steps, found.counts) == (7, 5, {'c': 3})
  assert found.figures['a'] == 0.5
  assert math.isnan(found.loss) and math.isnan(found.figures['b'])


def test_a_line_without_steps_and_counts_is_read():
  found = record.sample_of(hand_written.event(
      1, 'chief:0', 'sampling', step=7, loss=0.25, figures={}))
  assert found == (hand_written.START + 1, 7, 0.25, {}, 0, {}, None)


def test_numbers_for_json():
  assert [record.finite(v) for v in (1, math.nan, -math.inf)] == [
      1.0, None, None]
