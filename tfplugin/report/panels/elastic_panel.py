# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 4: distances of the workers' copies from the centre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfplugin.report.panels import panel


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `elastic` of report.json."""
  workers, figures = section['workers'], []
  notes = list(section['missing'])
  for title, told in (('Distance of each worker from the centre', workers),
                      ('Distance of each group of variables, chief',
                       section['groups'])):
    if told:
      plot = panel.figure(title, panel.SECS, '|local - centre|')
      curves = {name: t['distance'] for name, t in told.items()}
      panel.lines(plot, curves)
      notes += panel.nonfinite(curves)
      figures.append(plot)
  if section['spread']:
    plot = panel.figure('Largest distance of a worker less the smallest',
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
          [(t, _shown(w['largest']), _shown(w['last']),
            section['num_exchanges'].get(t, '')) for t, w in workers.items()])]
      if workers else (), notes)


def _shown(value) -> str:
  return 'not finite' if value is None else f'{value:.4g}'
