# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fifty tasks and many steps: a page of bounded size, with what stands out."""

from __future__ import annotations

import json
import re

import pytest
from plotly import offline

from tests.report import large_run
from tfplugin.report import writing
from tfplugin.report.reading import series

_TASKS = 50
_LAST = large_run.last_worker(_TASKS)


@pytest.fixture(scope='module', name='files')
def _files(tmp_path_factory):
  run_dir = tmp_path_factory.mktemp('run')
  large_run.write(run_dir, _TASKS, 100_000)
  return writing.write(run_dir)


@pytest.fixture(scope='module', name='report')
def _report(files):
  return json.loads(files['report.json'].read_text())


@pytest.fixture(scope='module', name='drawn')
def _drawn(files):
  """What the page draws for the last worker, by the plot's title."""
  found = {}
  for text in re.findall(r'<script type="application/json" id="[^"]*">(.*?)'
                         '</script>', files['report.html'].read_text(), re.S):
    plot = json.loads(text)
    for trace in plot['data']:
      if trace.get('name') == _LAST:
        found.setdefault(plot['layout']['title']['text'], trace)
  return found


def _curves(value):
  """Yields all curves in a part of the report."""
  if isinstance(value, dict):
    if 'num_points' in value:
      yield value
    else:
      for inner in value.values():
        yield from _curves(inner)


@pytest.mark.sampled(3)
def test_each_curve_has_few_points_and_says_how_many_there_were(report):
  for name, num_lines in (('losses', 2 * _TASKS), ('speed', 2 * _TASKS + 1)):
    curves = list(_curves(report[name]))
    assert len(curves) == num_lines
    for curve in curves:
      assert len(curve['x']) == len(curve['y']) <= series.budget(num_lines)
  # Twice a second, 1000 s long.
  assert report['losses']['workers'][_LAST]['over_secs']['num_points'] == 2000


@pytest.mark.sampled(3)
def test_the_page_is_small(files):
  script = len(offline.get_plotlyjs().encode())
  assert 0 < files['report.html'].stat().st_size - script < 1_200_000


def test_one_loss_of_a_hundred_thousand_is_drawn(report, drawn):
  told = report['losses']['workers'][_LAST]
  for key, title in (('over_secs', 'Loss over time'),
                     ('over_steps', 'Loss over steps')):
    assert max(filter(None, told[key]['y'])) == large_run.LOSS_SPIKE
    assert told[key]['num_nonfinite'] == 1
    # A gap, drawn as such.
    assert told[key]['y'].count(None) == 1
    shown = drawn[title]
    assert (shown['x'], shown['y']) == (told[key]['x'], told[key]['y'])
  place = told['over_secs']['y'].index(large_run.LOSS_SPIKE)
  # Two in a second, the first 2 s after the run has begun.
  assert told['over_secs']['x'][place] == pytest.approx(2 + 743 / 2)


def test_one_slow_stretch_of_a_worker_is_drawn(report, drawn):
  rate = report['speed']['workers'][_LAST]['rate']
  assert min(rate['y']) == large_run.RATE_DIP
  assert min(drawn['Steps/s of each worker']['y']) == large_run.RATE_DIP


def test_one_stale_gradient_is_in_both_histograms(report):
  section = report['staleness']
  assert section['by_worker']['largest'][_LAST] == large_run.STALENESS_SPIKE
  last = section['by_worker']['at_least'][-1]
  assert last <= large_run.STALENESS_SPIKE
  assert section['by_worker']['counts'][_LAST][-1] == 1
  assert sum(row[-1] for row in section['over_time']['counts']) == 1
  # No sample is lost.
  assert sum(map(sum, section['over_time']['counts'])) == 2000 * _TASKS
