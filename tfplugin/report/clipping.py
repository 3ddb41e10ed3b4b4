# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on clipping: the fractions of clipped rows. Panel 7."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.report import panel
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

CLIPPED = 'fraction of rows clipped'
AT_BOUND = 'fraction of rows at the bound'
# The tags in TensorBoard, of the hook and of tfplugin-train.
_TAGS = {CLIPPED: ('clipping/fraction_clipped', 'fraction_of_rows_clipped'),
         AT_BOUND: ('fraction_of_rows_at_the_bound',)}

_NO_FRACTION = (
    'Clipped rows: this run has recorded none. '
    'tfplugin.hooks.ClippingSummaryHook(optimizer, model_dir) writes their '
    'fraction, and so does tfplugin-train --wrapper=clip.')
_NO_NORMS = (
    'The largest norm and the number of updated rows: no hook writes them. '
    'tfplugin-train shows the largest norms at its end.')


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns the fractions over time, by worker."""
  found = {name: run.points(tags, name) for name, tags in _TAGS.items()}
  num_lines = sum(map(len, found.values()))
  limit = series.budget(num_lines)
  return {
      'max_norm': run_data.common(
          options.get('max_norm') for options in run.options_of('clip')),
      'fractions': {name: {
          task: _numbers(pairs, limit) for task, pairs in tasks.items()}
          for name, tasks in found.items() if tasks},
      'missing': ([] if num_lines else [_NO_FRACTION]) + [_NO_NORMS],
  }


def _numbers(pairs: Sequence[tuple[float, float]],
             limit: int) -> dict[str, Any]:
  values = [value for _, value in pairs if math.isfinite(value)]
  return {'fraction': series.thin(pairs, limit),
          'mean': sum(values) / len(values) if values else None,
          'largest': max(values, default=None)}


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `clipping` of report.json."""
  figures, rows, notes = [], [], list(section['missing'])
  for name, tasks in section['fractions'].items():
    plot = panel.figure(name.capitalize(), panel.SECS, 'fraction')
    curves = {t: numbers['fraction'] for t, numbers in tasks.items()}
    panel.lines(plot, curves)
    notes += panel.nonfinite(curves)
    plot.update_yaxes(tickformat='.0%', rangemode='tozero')
    figures.append(plot)
    rows += [(name, t, panel.shown(numbers['mean'], '.2%'),
              panel.shown(numbers['largest'], '.2%'))
             for t, numbers in tasks.items()]
  return panel.Panel(
      'Clipping',
      'The fraction of the updated rows whose norm was above the bound after '
      'the update. Near 1: the bound decides what is learnt.',
      [panel.Number('bound of the norm', 'clipping/max_norm',
                    section['max_norm'])],
      figures,
      [panel.Table(('what', 'task', 'mean', 'largest'), rows)] if rows else (),
      notes)
