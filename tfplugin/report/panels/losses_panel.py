# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 5: the loss of each worker and of the centre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfplugin.report.panels import panel


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `losses` of report.json."""
  workers, evaluations = section['workers'], section['evaluations']
  figures, notes = [], list(section['missing'])
  for key, x_title in (('over_steps', 'global step'),
                       ('over_secs', panel.SECS)):
    if workers or evaluations:
      plot = panel.figure(f'Loss over {key[5:]}', x_title, 'loss')
      curves = {task: told[key] for task, told in workers.items()}
      panel.lines(plot, curves)
      panel.lines(plot, {f'evaluation ({name})': told[key]
                         for name, told in evaluations.items()},
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
          ('of', 'least', 'last'),
          [(name, _shown(told['least']), _shown(told['last']))
           for name, told in {**workers, **evaluations}.items()])]
      if workers or evaluations else (), missing=notes)


def _is_positive(curves: Mapping[str, Any], key: str) -> bool:
  return all(y is None or y > 0 for told in curves.values()
             for y in told[key]['y'])


def _shown(value) -> str:
  return 'not finite' if value is None else f'{value:.5g}'
