# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on speed: steps, rates, lost time. Panel 2."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.events import record
from tfplugin.report import batches
from tfplugin.report import panel
from tfplugin.report import timeline
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

DROPPED = 'dropped gradients'
REDONE = 'steps made twice'


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns steps and rates by worker, and the lost time by cause.

    goodput = useful seconds / seconds of all tasks that train

  Useful are the seconds of training, less the shares of dropped gradients and
  of repeated steps in each session. Steps are repeated after the global step
  has fallen back to a checkpoint.
  """
  tasks = run.training_tasks
  limit = series.budget(2 * len(tasks) + 1)
  workers = {task: _worker(run.events_of[task], run.start, limit)
             for task in tasks}
  sizes = {event.session: run.options_in(event.session).get('batch_size')
           for event in run.reading.events}
  is_known = all(sizes.values())
  parts = [(sizes[session] if is_known else 1, events) for task in tasks
           for session, events in run.sessions_of(task).items()]
  missing = [] if is_known else [
      'Examples/s: the batch size is not known in all sessions, so steps/s of '
      'all workers are shown. tfplugin-train writes it into '
      'train_options.json.']
  steps = batches.read_steps(run)
  return {
      'first_step': steps.first,
      'last_step': steps.last,
      'redone_steps': sum(steps.undone.values()),
      'batches': batches.balance(run, steps),
      'workers': workers,
      'num_steps': sum(w['num_steps'] for w in workers.values()),
      'batch_size': run.options.get('batch_size'),
      'num_examples': sum(size * series.total(events, 'num_steps')
                          for size, events in parts) if is_known else None,
      'rate_unit': 'examples/s' if is_known else 'steps/s',
      'rate_of_all': _sum([
          (begin, end, rate * size)
          for size, events in parts
          for begin, end, rate in _rates(events, run.start)], limit),
      **_lost(run, steps),
      'missing': missing,
  }


def _worker(events: Sequence[record.Event], start: float,
            limit: int) -> dict[str, Any]:
  training = [e for e in events if e.name == 'training']
  rates = _rates(events, start)
  steps = [(e.time - start, e.step) for e in training if e.step is not None]
  num_steps = series.total(events, 'num_steps')
  secs = sum(end - begin for begin, end, _ in rates)
  return {
      'num_steps': num_steps,
      'steps_per_sec': sum((end - begin) * rate for begin, end, rate in rates)
                       / secs if secs else None,
      'step': series.thin(steps, limit),
      'rate': series.thin(_stairs(rates), limit),
  }


def _rates(events: Sequence[record.Event],
           start: float) -> list[tuple[float, float, float]]:
  """Returns begin, end and steps/s of each stretch that a task reported."""
  rates = []
  for process in record.by_process(events):
    training = [event for event in process if event.name == 'training']
    for before, event in zip(training, training[1:]):
      rate = event.details.get('steps_per_sec')
      if rate is not None:
        rates.append((before.time - start, event.time - start, rate))
  return rates


def _stairs(
    rates: Sequence[tuple[float, float, float]]) -> Iterator[tuple]:
  """Yields the corners of stairs, NaN where a task reported no rate."""
  latest = None
  for begin, end, rate in rates:
    if latest is not None and begin > latest:
      yield latest, math.nan
    yield begin, rate
    yield end, rate
    latest = end


def _sum(rates: Sequence[tuple[float, float, float]],
         limit: int) -> dict[str, Any]:
  """Returns the sum over the tasks at each time."""
  changes = sorted((time, change) for begin, end, rate in rates
                   for time, change in ((begin, rate), (end, -rate)))
  points, level = {}, 0.0
  for time, change in changes:
    level += change
    points[time] = max(level, 0.0)
  return series.thin(points.items(), limit)


def _lost(run: run_data.RunData, steps: batches.Steps) -> dict[str, Any]:
  """Returns the seconds of each task and of all tasks, by cause."""
  spans = timeline.spans_of(run)
  tasks = {task: _task_secs(spans[task], run, task, steps)
           for task in run.training_tasks}
  causes = dict.fromkeys(cause for secs in tasks.values() for cause in secs)
  of_all = {cause: sum(secs.get(cause, 0.0) for secs in tasks.values())
            for cause in causes}
  total = sum(of_all.values())
  useful = of_all.pop(timeline.TRAINING, 0.0)
  return {
      'secs_of_tasks': tasks,
      'task_secs': total,
      'useful_secs': useful,
      'lost_secs': dict(sorted(of_all.items(), key=lambda pair: -pair[1])),
      'goodput': useful / total if total else None,
  }


def _task_secs(spans: Sequence[timeline.Span], run: run_data.RunData,
               task: str, steps: batches.Steps) -> dict[str, float]:
  """Returns a task's seconds by cause; each session has its own shares."""
  secs = collections.Counter()
  for span in spans:
    secs[span.state] += span.secs
  sessions = run.sessions_of(task)
  begins = [events[0].time - run.start for events in sessions.values()]
  for (session, events), begin, end in zip(
      sessions.items(), begins, [*begins[1:], math.inf]):
    trained = sum(max(0.0, min(span.end, end) - max(span.start, begin))
                  for span in spans if span.state == timeline.TRAINING)
    dropped = series.total(events, 'num_dropped')
    made = dropped + series.total(events, 'num_applied')
    redone = steps.undone[session]
    for cause, number, of in ((DROPPED, dropped, made),
                              (REDONE, redone, steps.kept[session] + redone)):
      if number:
        secs[cause] += trained * number / of
        secs[timeline.TRAINING] -= trained * number / of
        trained -= trained * number / of
  return dict(secs)


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
    figures.append(_bars_of_lost(section))
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
      ([panel.Table(
          ('task', 'steps', 'steps/s while it trained'),
          [(t, f'{w["num_steps"]:,}', '' if w['steps_per_sec'] is None else
            f'{w["steps_per_sec"]:.2f}') for t, w in workers.items()])]
       if section['num_steps'] else []) + batches.tables(section['batches']),
      section['missing'])


def _bars_of_lost(section: Mapping[str, Any]) -> panel.Figure:
  """Returns the bars of the lost time."""
  lost = section['lost_secs']
  causes = [cause for cause, secs in lost.items() if secs > 0]
  plot = panel.figure(
      f'Time lost, of {section["task_secs"]:,.0f} s of all tasks that train',
      'seconds', '', showlegend=False)
  plot.add_bar(
      orientation='h', y=causes, x=[lost[cause] for cause in causes],
      text=[f'{lost[cause]:,.1f} s, {lost[cause] / section["task_secs"]:.1%}'
            for cause in causes],
      marker={'color': '#e45756'}, hoverinfo='none')
  plot.update_yaxes(autorange='reversed', automargin=True)
  return plot
