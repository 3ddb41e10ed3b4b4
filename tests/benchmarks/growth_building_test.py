# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What building takes and makes is counted, and shown as it was measured."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

from __future__ import annotations

import re
import statistics

import numpy as np
import pytest

from benchmarks import page_part
from benchmarks.growth import building
from benchmarks.growth import cells
from benchmarks.growth import forms

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')
_BY_HAND = {'about': _ABOUT, 'rounds': 3, 'ways': {'drop stale': {
    'of': 300, 'secs': [2.0, 3.0, 5.0], 'bare_secs': [1.0, 2.0, 2.0],
    'operations': 3000, 'bare_operations': 2000, 'variables': 302,
    'own': 0.125}}}


def test_figures_by_hand():
  text = building.PART.section(_BY_HAND)
  assert ('| drop stale, 300 | 2 (1.5 to 2.5) | 1.5 | 3,000 | 1000 | 302 '
          '| 12.5% |') in text


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  results = building.PART.read()
  assert building.PART.written(text, results) == text
  assert building.PART.written(text, _BY_HAND) != text
  for name, way in (results or {}).get('ways', {}).items():
    shown = re.search(rf'^\| {re.escape(name)}, {way["of"]} \| (\S+) ', text,
                      re.M)
    np.testing.assert_allclose(
        float(shown.group(1)), statistics.median(
            own / bare for own, bare in zip(way['secs'], way['bare_secs'])),
        rtol=1e-3)


def test_what_is_built_is_counted(monkeypatch):
  """Of an optimizer by itself nothing is tfplugin's own."""
  part = building._PART
  monkeypatch.setattr(forms, 'make_devices', lambda count: None)
  monkeypatch.setattr(building, '_PART', part.__class__(**{
      **vars(part), 'curves': (cells.Curve(cells.BARE),
                               cells.Curve('drop stale', 2))}))
  found = building.measure(3, rounds=2)
  bare, wrapped = found[cells.BARE], found['drop stale']
  assert (bare['of'], wrapped['of']) == (3, 2)
  assert bare['variables'] == 3 + 1  # And the step.
  assert bare['operations'] == bare['bare_operations']
  assert wrapped['operations'] > wrapped['bare_operations']
  assert wrapped['bare_operations'] < bare['operations']
  assert bare['own'] == 0.0 < wrapped['own'] < 1.0
  assert len(wrapped['secs']) == len(wrapped['bare_secs']) == 2
  assert bare['secs'] == bare['bare_secs']
  assert all(secs > 0 for secs in wrapped['secs'])


@pytest.mark.parametrize('curve', building._PART.curves)
def test_ways_are_those_of_the_curves(curve):
  assert curve.name in {name for name in (building.PART.read() or {}).get(
      'ways', {curve.name: None})}
