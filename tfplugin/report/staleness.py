# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on staleness, and dropped gradients by worker. Panel 3."""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfplugin.report import panel
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

_TAG = 'staleness/staleness'
# The bins of the histogram over time; narrower ones would look the same.
_TIME_BINS = 60
_VALUE_BINS = 40
# The least gradients of a stretch whose dropped fraction is shown.
_LEAST_GRADIENTS = 20

_NO_STALENESS = (
    'The staleness of each gradient: write it with '
    'tfplugin.hooks.StalenessSummaryHook, which each worker gives a directory '
    'of its own, model_dir/worker-0 and so on; tfplugin-train '
    '--wrapper=drop_stale writes it by itself.')
_NO_COUNTS = (
    'Dropped gradients: this run has recorded none. '
    'tfplugin.estimator.drop_stale_gradients, or '
    'tfplugin.distribute.DropStaleGradientStrategy, counts them into the '
    'events.')
_NO_BOUND = ('The bound: only tfplugin-train writes the settings of a run, '
             'into train_options.json.')
_BOUNDS_DIFFER = 'The bound: the sessions have different ones.'
_BOUND = {'line': {'color': '#c0392b', 'dash': 'dash'},
          'annotation_text': 'dropped beyond'}
_FRACTIONS = ('dropped_fraction', 'share_of_made', 'share_of_applied')


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns histograms of staleness, and the dropped fraction by worker.

  Dropping is biased against slow workers. The bias against a worker is its
  share of the computed gradients less its share of the applied ones.
  """
  points, missing = _finite(run.points((_TAG,), 'staleness'))
  workers = _dropped(run, series.budget(len(run.training_tasks)))
  bounds = {options.get('staleness')
            for options in run.options_of('drop_stale')}
  bound = run_data.common(bounds)
  missing += [] if points else [_NO_STALENESS]
  missing += [] if workers else [_NO_COUNTS]
  if (points or workers) and bound is None:
    missing.append(_BOUNDS_DIFFER if bounds - {None} else _NO_BOUND)
  dropped = sum(w['num_dropped'] for w in workers.values())
  made = dropped + sum(w['num_applied'] for w in workers.values())
  return {
      'bound': bound,
      'num_dropped': dropped,
      'num_made': made,
      'dropped_fraction': dropped / made if made else None,
      'workers': workers,
      **_histograms(points),
      'missing': missing,
  }


def _finite(points: Mapping[str, Sequence]) -> tuple[dict, list[str]]:
  """Returns the points that a histogram can have, and remarks on the others."""
  finite = {task: [pair for pair in pairs if math.isfinite(pair[1])]
            for task, pairs in points.items()}
  remarks = [f'{task}: {len(points[task]) - len(pairs)} of '
             f'{len(points[task])} values of staleness are not finite.'
             for task, pairs in finite.items() if pairs != points[task]]
  return {task: pairs for task, pairs in finite.items() if pairs}, remarks


def _dropped(run: run_data.RunData, limit: int) -> dict[str, dict[str, Any]]:
  workers = {}
  for task in run.training_tasks:
    events = run.events_of[task]
    dropped = series.running(events, 'num_dropped')
    if not dropped:
      continue
    applied = [count for _, count in series.running(events, 'num_applied')]
    made = dropped[-1][1] + applied[-1]
    workers[task] = {
        'num_dropped': dropped[-1][1], 'num_applied': applied[-1],
        'dropped_fraction': dropped[-1][1] / made if made else None,
        'fraction': series.thin(_stretches(
            [(time - run.start, d, a) for (time, d), a
             in zip(dropped, applied)]), limit)}
  return _with_shares(workers)


def _stretches(counts: Sequence[tuple[float, int, int]]
               ) -> Iterator[tuple[float, float]]:
  """Yields the end of each stretch, and the dropped fraction in it.

  `counts` are time, dropped and applied so far. A stretch of few gradients is
  joined to the next: one dropped gradient of one is not 100 %.
  """
  before = (0, 0)
  for time, dropped, applied in counts:
    new_dropped, new_applied = dropped - before[0], applied - before[1]
    if new_dropped + new_applied >= _LEAST_GRADIENTS:
      yield time, new_dropped / (new_dropped + new_applied)
      before = (dropped, applied)


def _with_shares(workers: dict[str, dict[str, Any]]) -> dict[str, Any]:
  made = sum(w['num_dropped'] + w['num_applied'] for w in workers.values())
  applied = sum(w['num_applied'] for w in workers.values())
  for worker in workers.values():
    own = worker['num_dropped'] + worker['num_applied']
    worker['share_of_made'] = own / made if made else None
    worker['share_of_applied'] = (worker['num_applied'] / applied if applied
                                  else None)
  return workers


def _histograms(points: Mapping[str, Sequence]) -> dict[str, dict | None]:
  """Returns counts by value for each worker, and by time and value for all."""
  if not points:
    return {'by_worker': None, 'over_time': None}
  values = {task: np.array([value for _, value in pairs])
            for task, pairs in points.items()}
  edges = _value_edges(max(float(v.max()) for v in values.values()))
  times = np.array([time for pairs in points.values() for time, _ in pairs])
  counts, time_edges, _ = np.histogram2d(
      times, np.concatenate(list(values.values())),
      bins=[min(_TIME_BINS, len(times)), edges])
  lower = [float(edge) for edge in np.ceil(edges[:-1])]
  return {
      'by_worker': {
          'at_least': lower,
          'counts': {task: np.histogram(v, edges)[0].tolist()
                     for task, v in values.items()},
          'means': {task: float(v.mean()) for task, v in values.items()},
          'largest': {task: float(v.max()) for task, v in values.items()}},
      'over_time': {
          'at_least': lower,
          'times': time_edges.tolist(),
          'counts': counts.astype(int).tolist()},
  }


def _value_edges(largest: float) -> np.ndarray:
  """Returns edges between whole numbers, in bins of equal width."""
  width = max(int(np.ceil((largest + 1) / _VALUE_BINS)), 1)
  num_bins = int(largest // width) + 1
  return np.arange(num_bins + 1) * width - 0.5


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `staleness` of report.json."""
  workers, figures, tables = section['workers'], [], []
  if section['over_time']:
    figures += [_by_worker(section), _over_time(section)]
  if workers:
    dropped = panel.figure('Dropped fraction of each worker', panel.SECS,
                           'dropped since last point')
    dropped.update_yaxes(tickformat='.1%', rangemode='tozero')
    panel.lines(dropped, {t: w['fraction'] for t, w in workers.items()},
                mode='lines+markers')
    figures.append(dropped)
    tables.append(panel.Table(
        ('task', 'dropped', 'applied', 'dropped fraction',
         'share of gradients made', 'share of gradients applied'),
        [(task, f'{numbers["num_dropped"]:,}', f'{numbers["num_applied"]:,}',
          *(f'{numbers[key] or 0:.2%}' for key in _FRACTIONS))
         for task, numbers in workers.items()]))
  return panel.Panel(
      'Staleness',
      'How many updates of other workers came between reading the variables '
      'and applying the gradient. Dropping stale gradients is a bias against '
      'slow workers: data that only they read is learnt less. Compare the last '
      'two columns of the table.',
      [panel.Number('bound', 'staleness/bound', section['bound'], 'd'),
       panel.Number('gradients dropped', 'staleness/num_dropped',
                    section['num_dropped'] if workers else None, ',d'),
       panel.Number('dropped fraction', 'staleness/dropped_fraction',
                    section['dropped_fraction'], '.2%')],
      figures, tables, section['missing'])


def _by_worker(section: Mapping[str, Any]) -> panel.Figure:
  """Returns the histograms side by side, the bound between its bars."""
  numbers = section['by_worker']
  plot = panel.figure('Staleness of each worker', 'staleness, global steps',
                      'share of the samples', barmode='group')
  for index, (task, counts) in enumerate(numbers['counts'].items()):
    plot.add_bar(
        x=numbers['at_least'], y=[c / max(sum(counts), 1) for c in counts],
        name=task, customdata=counts, marker={'color': panel.color(index)},
        hovertemplate='%{x}: %{customdata} samples, %{y:.1%}')
  plot.update_yaxes(tickformat='.0%')
  if section['bound'] is not None:
    plot.add_vline(section['bound'] + 0.5, **_BOUND)
  return plot


def _over_time(section: Mapping[str, Any]) -> panel.Figure:
  """Returns the counts by time and value."""
  numbers = section['over_time']
  times = numbers['times']
  middles = [(a + b) / 2 for a, b in zip(times, times[1:])]
  plot = panel.figure('Staleness over time, all workers', panel.SECS,
                      'staleness, global steps', showlegend=False)
  plot.add_heatmap(
      x=middles, y=numbers['at_least'], zmin=0,
      colorscale=[[0, '#deebf7'], [1, '#08306b']],
      z=[[count or None for count in row] for row in zip(*numbers['counts'])],
      colorbar={'title': {'text': 'samples'}},
      hovertemplate='%{z} samples of %{y} at %{x:.1f} s<extra></extra>')
  if section['bound'] is not None:
    plot.add_hline(section['bound'] + 0.5, **_BOUND)
  return plot
