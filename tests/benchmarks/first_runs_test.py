# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/programs.md are those of the recorded first runs."""
# BUILD data: //:sources
# BUILD data: //benchmarks:results

import json
import re

import numpy as np

from benchmarks import first_runs

_BY_HAND = {'rows': {
    'a': [dict(accuracy=0.5, wall_secs=10.4, figures={}),
          dict(accuracy=0.7, wall_secs=30.0, figures={}),
          dict(accuracy=0.6, wall_secs=20.0, figures={})],
    'b': [dict(accuracy=0.9, wall_secs=1.0,
               figures={'dropped': 3, 'applied': 1997})],
    'c': [dict(accuracy=0.9, wall_secs=1.0,
               figures={'largest row norm of x (bound 2)': 1.5,
                        'largest row norm of y (bound 2)': 1.99996})],
}}


def test_figures_by_hand():
  assert list(first_runs.lines(_BY_HAND))[2:] == [
      '| a | 60.0% | 20 s |',
      '| b | 90.0%; 3 of 2,000 gradients dropped | 1 s |',
      '| c | 90.0% (chance: 50%); largest row norm 2.0000, the bound is 2 '
      '| 1 s |']


def test_the_table_of_the_page_is_that_of_the_results():
  text = first_runs.PART.page.read_text(encoding='utf-8')
  results = first_runs.PART.read()
  assert first_runs.PART.written(text, results) == text
  if results is None:
    return
  assert set(results['rows']) == set(first_runs.ROWS)
  for name, every in json.loads(
      first_runs.PART.results.read_text())['rows'].items():
    row, = re.findall(rf'^\| {re.escape(name)} \| (.*) \|$', text, re.M)
    accuracy, secs = re.match(r'([\d.]+)%.* ([\d.]+) s$', row).groups()
    assert float(accuracy) == round(
        100 * np.median([each['accuracy'] for each in every]), 1)
    assert float(secs) == round(np.median([each['wall_secs']
                                           for each in every]))
    assert not any(each['restarts'] for each in every)
