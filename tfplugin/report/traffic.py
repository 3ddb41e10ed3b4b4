# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on traffic: exchanges, and the times of saves. Panel 6."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfplugin.report import panel
from tfplugin.report import timeline
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

_NO_BYTES = (
    'Bytes to and from each ps, and the time of an exchange: neither events '
    'nor summaries have them. Give a worker '
    'tf.estimator.ProfilerHook(save_steps=100, output_dir=...): its '
    'timeline-*.json has the sends and receives of a step, with their bytes.')
_NO_EXCHANGES = (
    'Exchanges: elastic averaging alone counts them; the other wrappers use '
    'the parameter servers in every step, so that steps/s shows them.')


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns exchanges by worker, and the times of saves."""
  limit = series.budget(len(run.training_tasks))
  exchanges = {}
  for task in run.training_tasks:
    counts = series.running(run.events_of[task], 'num_exchanges')
    if counts:
      exchanges[task] = {
          'num_exchanges': counts[-1][1],
          'count': series.thin(
              [(time - run.start, count) for time, count in counts], limit)}
  saves = [span.secs for spans in timeline.spans_of(run).values()
           for span in spans if span.state == timeline.SAVING]
  return {
      'exchanges': exchanges,
      'num_exchanges': sum(e['num_exchanges'] for e in exchanges.values()),
      'saves': _times(saves),
      'missing': ([] if exchanges else [_NO_EXCHANGES]) + [_NO_BYTES],
  }


def _times(secs: Sequence[float]) -> dict[str, Any]:
  if not secs:
    return {'num': 0, 'p50_secs': None, 'p95_secs': None, 'max_secs': None}
  p50, p95 = np.percentile(secs, [50, 95])
  return {'num': len(secs), 'p50_secs': float(p50), 'p95_secs': float(p95),
          'max_secs': max(secs)}


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `traffic` of report.json."""
  exchanges, saves, figures = section['exchanges'], section['saves'], []
  if exchanges:
    plot = panel.figure('Exchanges of each worker, so far', panel.SECS,
                        'exchanges')
    panel.lines(plot, {t: e['count'] for t, e in exchanges.items()},
                mode='lines+markers')
    figures.append(plot)
  return panel.Panel(
      'Exchanges and saves',
      'Exchanges between the tasks, as far as the run has recorded them.',
      [panel.Number('exchanges', 'traffic/num_exchanges',
                    section['num_exchanges'] if exchanges else None, ',d'),
       panel.Number('checkpoints', 'traffic/saves/num', saves['num'], ',d'),
       panel.Number('s, the median save', 'traffic/saves/p50_secs',
                    saves['p50_secs'], '.3f'),
       panel.Number('s, 95 of 100 saves take less', 'traffic/saves/p95_secs',
                    saves['p95_secs'], '.3f')],
      figures, missing=section['missing'])
