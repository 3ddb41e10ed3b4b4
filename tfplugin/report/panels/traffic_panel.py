# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 6: exchanges and saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfplugin.report.panels import panel


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
       panel.Number('a save takes, s (p50)', 'traffic/saves/p50_secs',
                    saves['p50_secs'], '.3f'),
       panel.Number('(p95)', 'traffic/saves/p95_secs', saves['p95_secs'],
                    '.3f')],
      figures, missing=section['missing'])
