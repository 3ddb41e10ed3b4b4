# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on elastic averaging: distances from the centre. Panel 4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfplugin.events import record
from tfplugin.ops import elastic
from tfplugin.report import panel
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

_TAGS = ('elastic_distance', 'elastic_distance_1')
_GROUP = 'elastic_distance/'

_NO_DISTANCE = (
    'The distance: write it with tfplugin.hooks.ElasticDistanceHook, which '
    'each worker gives a directory of its own, model_dir/worker-0 and so on; '
    'tfplugin-train --wrapper=elastic_average writes it by itself.')
_NO_GROUPS = (
    'The distance of each group of variables: no hook writes it. A scalar '
    'summary elastic_distance/NAME of your model_fn is shown as the distance '
    'of NAME.')
_NO_EXCHANGES = (
    'Exchanges: this run has recorded none. '
    'tfplugin.estimator.elastic_average, or '
    'tfplugin.distribute.ElasticAverageStrategy, counts them into the events.')


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns distances by worker and group, their spread, and exchanges.

  The spread is the largest distance of a worker less the smallest, at times
  when all of the session are known. An exchange moves `moving_rate` of the
  difference.
  """
  points = run.points(_TAGS, 'elastic distance')
  groups = _groups(run)
  limit = series.budget(len(points) + len(groups) + 1)
  exchanges = {task: series.total(run.events_of[task], 'num_exchanges')
               for task in run.training_tasks
               if any(e.name == 'exchanging' for e in run.events_of[task])}
  missing = [] if points else [_NO_DISTANCE]
  missing += [] if groups else [_NO_GROUPS]
  missing += [] if exchanges else [_NO_EXCHANGES]
  spread = _spread_of_sessions(points, run)
  settings = run.options_of('elastic_average')
  return {
      'workers': {task: _curve(pairs, limit) for task, pairs in points.items()},
      'groups': {name: _curve(pairs, limit) for name, pairs in groups.items()},
      'spread': _curve(spread, limit) if spread else None,
      'moving_rate': run_data.common(map(_moving_rate, settings)),
      'communication_period': run_data.common(
          options.get('communication_period') for options in settings),
      'num_exchanges': exchanges,
      'missing': missing,
  }


def _curve(pairs: list[tuple[float, float]], limit: int) -> dict[str, Any]:
  values = [value for _, value in pairs]
  return {'distance': series.thin(pairs, limit),
          'largest': record.finite(max(values)),
          'last': record.finite(values[-1])}


def _groups(run: run_data.RunData) -> dict[str, list[tuple[float, float]]]:
  """Returns the chief's distance of each group of variables."""
  return {tag[len(_GROUP):]: [(time - run.start, value) for time, value
                              in zip(curve.times, curve.values)]
          for tag, curve in sorted(run.scalars.get('', {}).items())
          if tag.startswith(_GROUP)}


def _spread_of_sessions(points: Mapping[str, list],
                        run: run_data.RunData) -> list[tuple[float, float]]:
  """Returns the spread in each session, of the workers that it has."""
  begins = [events[0].time - run.start for events in run.sessions.values()]
  begins[0], spread = -np.inf, []
  for begin, end in zip(begins, [*begins[1:], np.inf]):
    within = {task: [pair for pair in pairs if begin <= pair[0] < end]
              for task, pairs in points.items()}
    spread += _spread({task: pairs for task, pairs in within.items() if pairs})
  return spread


def _spread(points: Mapping[str, list]) -> list[tuple[float, float]]:
  """Returns largest less smallest of the workers' last values at each time."""
  if len(points) < 2:
    return []
  columns = [np.array(pairs).T for pairs in points.values()]
  times = np.unique(np.concatenate([column[0] for column in columns]))
  times = times[times >= max(column[0].min() for column in columns)]
  largest = np.full(len(times), -np.inf)
  smallest = np.full(len(times), np.inf)
  for column in columns:
    column = column[:, np.argsort(column[0], kind='stable')]
    newest = column[1][np.searchsorted(column[0], times, 'right') - 1]
    # NaN stays NaN.
    largest = np.maximum(largest, newest)
    smallest = np.minimum(smallest, newest)
  with np.errstate(invalid='ignore'):  # Infinity less infinity.
    return list(zip(times.tolist(), (largest - smallest).tolist()))


def _moving_rate(options: Mapping[str, Any]) -> float | None:
  """Returns the share of the difference that moves; None if unknown."""
  rate = options.get('moving_rate')
  if rate is not None or 'communication_period' not in options:
    return rate
  return elastic.default_moving_rate(options['communication_period'],
                                     options['workers'] + 1)


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `elastic` of report.json."""
  workers, figures = section['workers'], []
  notes = list(section['missing'])
  for title, numbers in (('Distance of each worker from the centre', workers),
                         ('Distance of each group of variables, chief',
                          section['groups'])):
    if numbers:
      plot = panel.figure(title, panel.SECS, '|copy - centre|')
      curves = {name: t['distance'] for name, t in numbers.items()}
      panel.lines(plot, curves)
      notes += panel.nonfinite(curves)
      figures.append(plot)
  if section['spread']:
    plot = panel.figure('Largest minus smallest distance of a worker',
                        panel.SECS, 'spread', showlegend=False)
    panel.lines(plot, {'spread': section['spread']['distance']})
    figures.append(plot)
  return panel.Panel(
      'Elastic distance',
      'A distance that grows without end means a moving rate that is too small '
      'for the communication period, or out of the stable range. An exchange '
      'moves copy and centre by the moving rate times the difference.',
      [panel.Number('share of the difference that an exchange moves',
                    'elastic/moving_rate', section['moving_rate']),
       panel.Number('steps between two exchanges',
                    'elastic/communication_period',
                    section['communication_period'], ',d'),
       panel.Number('largest spread', 'elastic/spread/largest',
                    section['spread'] and section['spread']['largest'])],
      figures,
      [panel.Table(
          ('task', 'largest distance', 'last distance', 'exchanges'),
          [(t, panel.shown(w['largest']), panel.shown(w['last']),
            section['num_exchanges'].get(t, '')) for t, w in workers.items()])]
      if workers else (), notes)
