# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 3: staleness, and dropped gradients by worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plotly import graph_objects as go

from tfplugin.report.panels import panel

_FRACTIONS = ('dropped_fraction', 'share_of_made', 'share_of_applied')


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `staleness` of report.json."""
  workers, figures, tables = section['workers'], [], []
  if section['over_time']:
    figures += [_by_worker(section), _over_time(section)]
  if workers:
    dropped = panel.figure('Dropped fraction of each worker', panel.SECS,
                           'of the gradients since the point before')
    dropped.update_yaxes(tickformat='.1%', rangemode='tozero')
    panel.lines(dropped, {t: w['fraction'] for t, w in workers.items()},
                mode='lines+markers')
    figures.append(dropped)
    tables.append(panel.Table(
        ('task', 'dropped', 'applied', 'dropped fraction',
         'share of gradients made', 'share of gradients applied'),
        [(task, f'{told["num_dropped"]:,}', f'{told["num_applied"]:,}',
          *(f'{told[key] or 0:.2%}' for key in _FRACTIONS))
         for task, told in workers.items()]))
  return panel.Panel(
      'Staleness',
      'How many updates of others came between the reading of the variables '
      'and a gradient of them. Dropping by age is a bias against slow workers: '
      'what they alone have seen is learnt less. Compare the last two columns '
      'of the table.',
      [panel.Number('bound', 'staleness/bound', section['bound'], 'd'),
       panel.Number('gradients dropped', 'staleness/num_dropped',
                    section['num_dropped'] if workers else None, ',d'),
       panel.Number('dropped fraction', 'staleness/dropped_fraction',
                    section['dropped_fraction'], '.2%')],
      figures, tables, section['missing'])


def _by_worker(section: Mapping[str, Any]) -> go.Figure:
  """Returns the histograms side by side, the bound between its bars."""
  told = section['by_worker']
  plot = panel.figure('Staleness of each worker', 'staleness, global steps',
                      'share of the samples', barmode='group')
  for index, (task, counts) in enumerate(told['counts'].items()):
    plot.add_trace(go.Bar(
        x=told['at_least'], y=[c / max(sum(counts), 1) for c in counts],
        name=task, customdata=counts, marker={'color': panel.color(index)},
        hovertemplate='%{x}: %{customdata} samples, %{y:.1%}'))
  plot.update_yaxes(tickformat='.0%')
  if section['bound'] is not None:
    plot.add_vline(section['bound'] + 0.5, line={'color': '#c0392b',
                                                 'dash': 'dash'},
                   annotation_text='dropped beyond')
  return plot


def _over_time(section: Mapping[str, Any]) -> go.Figure:
  """Returns the counts by time and value."""
  told = section['over_time']
  middles = [(a + b) / 2 for a, b in zip(told['times'], told['times'][1:])]
  plot = panel.figure('Staleness over time, all workers', panel.SECS,
                      'staleness, global steps', showlegend=False)
  plot.add_trace(go.Heatmap(
      x=middles, y=told['at_least'], zmin=0,
      colorscale=[[0, '#deebf7'], [1, '#08306b']],
      z=[[count or None for count in row] for row in zip(*told['counts'])],
      colorbar={'title': {'text': 'samples'}},
      hovertemplate='%{z} samples of %{y} at %{x:.1f} s<extra></extra>'))
  if section['bound'] is not None:
    plot.add_hline(section['bound'] + 0.5, line={'color': '#c0392b',
                                                 'dash': 'dash'},
                   annotation_text='dropped beyond')
  return plot
