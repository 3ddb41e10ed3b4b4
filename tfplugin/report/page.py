# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Page of the report: all panels in one file, without server or network."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.report import clipping
from tfplugin.report import elastic
from tfplugin.report import losses
from tfplugin.report import outcome as outcome_lib
from tfplugin.report import panel as panel_lib
from tfplugin.report import settings
from tfplugin.report import speed
from tfplugin.report import staleness
from tfplugin.report import timeline
from tfplugin.report import traffic

# The sections of report.json and their panels, in the order of the page.
SECTIONS = {
    'timeline': timeline,
    'speed': speed,
    'staleness': staleness,
    'elastic': elastic,
    'losses': losses,
    'traffic': traffic,
    'clipping': clipping,
    'settings': settings,
}
PANELS = {name: section.draw for name, section in SECTIONS.items()}

_STYLE = '''
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1280px;
padding:0 20px 60px;color:#222;background:#fff}
h1{font-size:22px;margin:22px 0 2px}.outcome{font-size:18px;margin:0 0 6px}
h2{font-size:18px;margin:0}
nav a{margin-right:14px;color:#1f4e79}.dir{color:#666;word-break:break-all}
section{border-top:1px solid #ddd;margin-top:26px;padding-top:14px}
.reading{color:#555;max-width:80ch;margin:4px 0 10px}
.numbers{display:flex;flex-wrap:wrap;gap:12px;margin:10px 0}
.number{background:#f5f6f8;border-radius:6px;padding:8px 14px}
.number b{display:block;font-size:21px}.number span{color:#555;font-size:13px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(540px,1fr))}
@media(max-width:600px){.figures{grid-template-columns:1fr}}
.wide{grid-template-columns:1fr}
.missing{color:#7a5b00;background:#fff8e1;border-left:3px solid #eeca3b;
padding:4px 12px;margin:8px 0;max-width:95ch}
table{border-collapse:collapse;margin:12px 0;font-size:14px;display:block;
overflow-x:auto}
th,td{text-align:left;padding:3px 14px 3px 0;border-bottom:1px solid #eee;
vertical-align:top;white-space:nowrap}th{color:#555;font-weight:600}
td:last-child{white-space:normal;overflow-wrap:anywhere}
.plot{min-width:0;min-height:340px}
@media(max-width:600px){th,td{white-space:normal;padding-right:8px}}
'''
# A plot is drawn when it is near the window, or printed, and shown before the
# next one: the page opens at once, with any amount of data.
_DRAW = '''
(function() {
  var narrow = window.innerWidth < 600;
  function draw(div) {
    var data = document.getElementById('data-' + div.id);
    if (!data || div.dataset.drawn) return;
    div.dataset.drawn = 1;
    var plot = JSON.parse(data.textContent);
    if (narrow) {
      // Below the curves, not over them; and a finger scrolls the page.
      plot.layout.legend = {orientation: 'h', font: {size: 11}, x: 0,
                            yref: 'container', y: 0, yanchor: 'bottom'};
      plot.layout.margin = {l: 48, r: 8, t: 48, b: 48};
      plot.layout.dragmode = false;
    }
    Plotly.newPlot(div, plot.data, plot.layout,
                   {responsive: true, displaylogo: false,
                    displayModeBar: narrow ? false : 'hover',
                    // Of plotly 7 the default: a button that uploads the data.
                    showSendToCloud: false});
  }
  var waiting = [], busy = false;
  function next() {
    busy = waiting.length > 0;
    if (!busy) return;
    draw(waiting.shift());
    requestAnimationFrame(function() { setTimeout(next); });
  }
  var plots = Array.from(document.querySelectorAll('.plot'));
  window.addEventListener('beforeprint', function() { plots.forEach(draw); });
  if (!('IntersectionObserver' in window)) return plots.forEach(draw);
  var seen = new IntersectionObserver(function(entries) {
    entries.forEach(function(e) {
      if (e.isIntersecting) waiting.push(e.target);
    });
    if (!busy) next();
  }, {rootMargin: '400px'});
  plots.forEach(function(div) { seen.observe(div); });
})();
'''


def render(report: Mapping[str, Any]) -> str:
  """Returns the page for the result of `writing.measure`."""
  # The plotting library, 4.8 MB, is in the page: it needs no network.
  from plotly import offline
  drawn = {name: draw(report[name]) for name, draw in PANELS.items()}
  panels = {name: p for name, p in drawn.items() if p.has_data}
  missing = [text for p in drawn.values() if not p.has_data
             for text in p.missing]
  _align(panels.values(), report['timeline']['wall_secs'])
  links = ''.join(f'<a href="#{name}">{_text(p.title)}</a>'
                  for name, p in panels.items())
  sections = '\n'.join(_section(name, p) for name, p in panels.items())
  data = '\n'.join(_data(name, p) for name, p in panels.items())
  outcome = report['outcome']
  title = f'{outcome["title"]}: {outcome["text"]}'
  return (
      '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
      '<meta name="viewport" content="width=device-width,initial-scale=1">'
      f'<title>{_text(title)}</title><style>{_STYLE}</style></head><body>\n'
      f'{_head(outcome, report["run_dir"])}<nav>{links}</nav>\n'
      f'{sections}\n{_missing_sources(missing)}\n{data}\n'
      # After the text, which can be read while the library is parsed.
      f'<script>{offline.get_plotlyjs()}</script>\n<script>{_DRAW}</script></body></html>\n')


def _head(outcome: Mapping[str, Any], run_dir: str) -> str:
  """Returns title and outcome of the run, and a row for each session."""
  date = outcome_lib.date(outcome['start_time'])
  head = (f'<h1>{_text(outcome["title"])}, {date}</h1>'
          f'<p class="outcome">{_text(outcome["text"])}</p>'
          f'<div class="dir">{_text(run_dir)}</div>')
  if len(outcome['sessions']) < 2:
    return head
  return head + _table(panel_lib.Table(
      ('session', 'trained with', 'began', 'took', 'steps', 'outcome'),
      [(s['number'], s['technique'], outcome_lib.date(s['start_time']),
        f'{s["secs"]:,.0f} s',
        '' if s['last_step'] is None else
        f'{s["first_step"]:,} to {s["last_step"]:,}', s['outcome'])
       for s in outcome['sessions']])) + (
           '<p class="reading">Long pauses between sessions are cut out of all '
           'times.</p>')


def _missing_sources(texts: Sequence[str]) -> str:
  """Returns the sources that would fill the panels without data, folded."""
  if not texts:
    return ''
  return ('<details><summary>Panels without data are not shown. How to '
          'fill them</summary>'
          + ''.join(f'<p class="missing">{_text(text)}</p>' for text in texts)
          + '</details>')


def _align(panels: Iterable[panel_lib.Panel], wall_secs: float) -> None:
  """Sets the same time axis for all plots over time."""
  for panel in panels:
    for plot in panel.figures:
      if plot.layout.xaxis.title.text == panel_lib.SECS:
        plot.update_xaxes(range=[0, wall_secs])


def _section(name: str, panel: panel_lib.Panel) -> str:
  parts = [f'<section id="{name}"><h2>{_text(panel.title)}</h2>',
           f'<p class="reading">{_text(panel.reading)}</p>',
           _numbers(panel.numbers)]
  parts += [f'<p class="missing">{_text(text)}</p>' for text in panel.missing]
  wide = ' wide' if len(panel.figures) == 1 else ''
  parts.append(f'<div class="figures{wide}">')
  parts += [f'<div id="{name}-{index}" class="plot"></div>'
            for index in range(len(panel.figures))]
  parts.append('</div>')
  parts += [_table(table) for table in panel.tables]
  return '\n'.join([*parts, '</section>'])


def _numbers(numbers: Sequence[panel_lib.Number]) -> str:
  shown = [
      f'<div class="number" data-path="{_text(n.path)}" '
      f'data-value="{_text(json.dumps(n.value))}"><b>'
      f'{_text(format(n.value, n.form))}</b><span>{_text(n.label)}</span></div>'
      for n in numbers if n.value is not None]
  return f'<div class="numbers">{"".join(shown)}</div>' if shown else ''


def _data(name: str, panel: panel_lib.Panel) -> str:
  """Returns the data of a panel's plots, as scripts of the page."""
  # A text must not end the script around it.
  return '\n'.join(
      f'<script type="application/json" id="data-{name}-{index}">'
      + plot.to_json().replace('</', '<\\/') + '</script>'
      for index, plot in enumerate(panel.figures))


def _table(table: panel_lib.Table) -> str:
  head = ''.join(f'<th>{_text(text)}</th>' for text in table.headings)
  rows = ''.join(
      '<tr>' + ''.join(f'<td>{_text(cell)}</td>' for cell in row) + '</tr>'
      for row in table.rows)
  return f'<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _text(value: Any) -> str:
  return html.escape(str(value))
