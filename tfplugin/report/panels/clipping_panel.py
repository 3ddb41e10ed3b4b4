# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 7: fractions of clipped rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfplugin.report.panels import panel


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `clipping` of report.json."""
  figures, rows = [], []
  for name, tasks in section['fractions'].items():
    plot = panel.figure(name.capitalize(), panel.SECS, 'fraction')
    panel.lines(plot, {t: told['fraction'] for t, told in tasks.items()})
    plot.update_yaxes(tickformat='.0%', rangemode='tozero')
    figures.append(plot)
    rows += [(name, t, f'{told["mean"]:.2%}', f'{told["largest"]:.2%}')
             for t, told in tasks.items()]
  return panel.Panel(
      'Clipping',
      'The fraction of the rows that an update touched and that were longer '
      'than the bound after it. Near 1: the bound decides what is learnt.',
      [panel.Number('bound of the norm', 'clipping/max_norm',
                    section['max_norm'])],
      figures,
      [panel.Table(('what', 'task', 'mean', 'largest'), rows)] if rows else (),
      section['missing'])
