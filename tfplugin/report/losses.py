# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on losses: of each worker, and of the saved centre. Panel 5."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.events import record
from tfplugin.report import panel
from tfplugin.report.reading import run_data
from tfplugin.report.reading import scalars
from tfplugin.report.reading import series

_NO_WORKERS = (
    'The loss of each worker: tfplugin-train writes it twice a second. In a '
    'program of your own the chief writes its loss as the summary `loss` by '
    'itself. A worker with parameter servers writes it by '
    'tfplugin.hooks.TensorBoardHook, which train_and_evaluate adds.')
_NO_CENTRE = (
    'The loss of the saved model: an evaluator writes it, tfplugin-train '
    '--evaluator, or a task `evaluator` in TF_CONFIG.')


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns losses over steps and over seconds."""
  workers = {task: _samples(curve) for task, curve
             in scalars.by_task(run.scalars, 'loss').items()}
  workers.update((task, lines) for task, lines in run.samples.items() if lines)
  evaluations = {
      directory: _samples(curves['loss'])
      for directory, curves in run.scalars.items()
      if scalars.is_evaluation(directory) and 'loss' in curves}
  limit = series.budget(2 * (len(workers) + len(evaluations)))
  return {
      'workers': {task: _curves(workers[task], run.start, limit)
                  for task in sorted(workers)},
      'evaluations': {name: _curves(points, run.start, limit)
                      for name, points in sorted(evaluations.items())},
      'missing': [text for found, text in (
          (workers, _NO_WORKERS), (evaluations, _NO_CENTRE)) if not found],
  }


def _samples(curve: scalars.Curve) -> list[record.Sample]:
  """Returns the points of a curve as samples of a loss."""
  return [record.Sample(*point, {})
          for point in zip(curve.times, curve.steps, curve.values)]


def _curves(points: Sequence[record.Sample], start: float,
            limit: int) -> dict[str, Any]:
  by_time = sorted(points, key=lambda p: (p.time, p.step))
  by_step = sorted(points, key=lambda p: p.step)
  losses = [p.loss for p in by_time]
  return {
      'over_secs': series.thin([(p.time - start, p.loss) for p in by_time],
                               limit),
      'over_steps': series.thin([(p.step, p.loss) for p in by_step], limit),
      'last': record.finite(losses[-1]),
      'least': min(filter(lambda v: v is not None,
                          map(record.finite, losses)), default=None),
  }


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `losses` of report.json."""
  workers, evaluations = section['workers'], section['evaluations']
  figures, notes = [], list(section['missing'])
  for key, over, x_title in (('over_steps', 'steps', 'global step'),
                             ('over_secs', 'time', panel.SECS)):
    if workers or evaluations:
      plot = panel.figure(f'Loss over {over}', x_title, 'loss')
      curves = {task: numbers[key] for task, numbers in workers.items()}
      panel.lines(plot, curves)
      panel.lines(plot, {f'evaluation ({name})': numbers[key]
                         for name, numbers in evaluations.items()},
                  mode='lines+markers', dash='dash', first=len(workers))
      if _is_positive(workers, key) and _is_positive(evaluations, key):
        plot.update_yaxes(type='log')
      figures.append(plot)
      notes += panel.nonfinite(curves) if key == 'over_steps' else []
  return panel.Panel(
      'Loss',
      "A worker's loss is computed on its own batch and, under elastic "
      'averaging, with its own copy. Evaluations use the saved model, which is '
      'the centre, and held-out data.',
      figures=figures,
      tables=[panel.Table(
          ('loss of', 'least', 'last'),
          [(name, *(panel.shown(numbers[key], '.5g')
                    for key in ('least', 'last')))
           for name, numbers in {**workers, **evaluations}.items()])]
      if workers or evaluations else (), missing=notes)


def _is_positive(curves: Mapping[str, Any], key: str) -> bool:
  return all(y is None or y > 0 for numbers in curves.values()
             for y in numbers[key]['y'])
