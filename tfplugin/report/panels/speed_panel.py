# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 2: steps, their rates, and the lost time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plotly import graph_objects as go

from tfplugin.report.panels import panel


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `speed` of report.json."""
  workers = section['workers']
  rate_of_all = section['rate_of_all']
  unit = section['rate_unit']
  total = (('examples', 'num_examples') if section['num_examples'] else
           ('steps of all workers', 'num_steps'))
  step = panel.figure('Global step', panel.SECS, 'global step')
  panel.lines(step, {t: w['step'] for t, w in workers.items()},
              mode='lines+markers')
  rate = panel.figure('Steps/s of each worker', panel.SECS, 'steps/s')
  panel.lines(rate, {t: w['rate'] for t, w in workers.items()})
  rate.update_yaxes(rangemode='tozero')
  has_steps = any(w['step']['x'] for w in workers.values())
  figures = [step, rate] if has_steps else []
  if rate_of_all['x']:
    both = panel.figure(f'{unit.capitalize()} of all workers', panel.SECS, unit,
                        showlegend=False)
    panel.lines(both, {'all': rate_of_all})
    both.update_traces(line={'shape': 'hv'})
    figures.append(both)
  if any(section['lost_secs'].values()):
    figures.append(_lost(section))
  return panel.Panel(
      'Speed, and where the time went',
      'Goodput is the share of the training time of all tasks that went into '
      'steps that counted. The rest is listed by cause.',
      [panel.Number('goodput', 'speed/goodput', section['goodput'], '.1%'),
       panel.Number('global step', 'speed/last_step', section['last_step'],
                    ',d'),
       panel.Number(total[0], f'speed/{total[1]}', section[total[1]], ',d'),
       panel.Number('steps made twice', 'speed/redone_steps',
                    section['redone_steps'], ',d')],
      figures,
      [panel.Table(
          ('task', 'steps', 'steps/s while it trained'),
          [(t, f'{w["num_steps"]:,}', '' if w['steps_per_sec'] is None else
            f'{w["steps_per_sec"]:.2f}') for t, w in workers.items()])]
      if section['num_steps'] else [],
      section['missing'])


def _lost(section: Mapping[str, Any]) -> go.Figure:
  """Returns the bars of the lost time."""
  lost = section['lost_secs']
  causes = [cause for cause, secs in lost.items() if secs > 0]
  plot = panel.figure(
      f'Time lost, of {section["task_secs"]:,.0f} s of all tasks that train',
      'seconds', '', showlegend=False)
  plot.add_trace(go.Bar(
      orientation='h', y=causes, x=[lost[cause] for cause in causes],
      text=[f'{lost[cause]:,.1f} s, {lost[cause] / section["task_secs"]:.1%}'
            for cause in causes],
      marker={'color': '#e45756'}, hoverinfo='none'))
  plot.update_yaxes(autorange='reversed', automargin=True)
  return plot
