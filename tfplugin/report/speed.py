# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on speed: steps, rates, the balance of batches, lost time. Panel 2."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.events import record
from tfplugin.report import panel
from tfplugin.report import timeline
from tfplugin.report.reading import run_data
from tfplugin.report.reading import series

DROPPED = 'dropped gradients'
REDONE = 'steps made twice'

# Events that have the newest step; the event of a death has an old one.
_TELL = ('training', 'saving', 'injecting')
_NO_END, _SESSION = 'no last event', 'session lost'


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns steps and rates by worker, and the lost time by cause.

    goodput = useful seconds / seconds of all tasks that train

  Useful are the seconds of training, less the shares of dropped gradients and
  of repeated steps. Steps are repeated after the global step has fallen back to
  a checkpoint.
  """
  tasks = run.training_tasks
  batch_size = run.options.get('batch_size')
  limit = series.budget(2 * len(tasks) + 1)
  workers = {task: _worker(run.events_of[task], run.start, limit)
             for task in tasks}
  num_steps = sum(w['num_steps'] for w in workers.values())
  rates = {task: _rates(run.events_of[task], run.start) for task in tasks}
  unit = batch_size or 1
  missing = [] if batch_size else [
      'Examples/s: the batch size is not known, so steps/s of all workers are '
      'shown. tfplugin-train writes it into train_options.json.']
  steps = _steps(run)
  return {
      **steps,
      'batches': balance(run, steps),
      'workers': workers,
      'num_steps': num_steps,
      'batch_size': batch_size,
      'num_examples': batch_size and num_steps * batch_size,
      'rate_unit': 'examples/s' if batch_size else 'steps/s',
      'rate_of_all': _sum(rates.values(), unit, limit),
      **_lost(run),
      'missing': missing,
  }


def _worker(events: Sequence[record.Event], start: float,
            limit: int) -> dict[str, Any]:
  told = [e for e in events if e.name == 'training']
  rates = _rates(events, start)
  steps = [(e.time - start, e.step) for e in told if e.step is not None]
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
    told = [event for event in process if event.name == 'training']
    for before, event in zip(told, told[1:]):
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


def _sum(rates, unit: int, limit: int) -> dict[str, Any]:
  """Returns the sum over the tasks at each time."""
  changes = sorted((time, change * unit) for task in rates
                   for begin, end, rate in task
                   for time, change in ((begin, rate), (end, -rate)))
  points, level = {}, 0.0
  for time, change in changes:
    level += change
    points[time] = max(level, 0.0)
  return series.thin(points.items(), limit)


def _steps(run: run_data.RunData) -> dict[str, int | None]:
  """Returns first and last global step, and the number of repeated steps."""
  first, top, redone = None, None, 0
  # This task restores for all; the step that another one reads may be late.
  restorer = (run.training_tasks or [None])[0]
  for event in run.reading.events:
    if event.step is None:
      continue
    if event.task == restorer and _restores(event):
      first = event.step if first is None else first
      redone += max((top or 0) - event.step, 0)
      top = event.step
    elif event.name in _TELL:
      first = event.step if first is None else first
      top = max(top or 0, event.step)
  return {'first_step': first, 'last_step': top, 'redone_steps': redone}


def _restores(event: record.Event) -> bool:
  """Returns whether a session was just made, from a checkpoint or from a ps."""
  return (event.name == 'starting' or event.name == 'coming_back' and
          event.details.get('what') == 'session')


def _lost(run: run_data.RunData) -> dict[str, Any]:
  """Returns the seconds of each task and of all tasks, by cause."""
  spans = timeline.spans_of(run)
  tasks = {task: _task_secs(spans[task], run.events_of[task])
           for task in run.training_tasks}
  _move_redone(tasks, _steps(run))
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


def _task_secs(spans: Sequence[timeline.Span],
               events: Sequence[record.Event]) -> dict[str, float]:
  secs = {}
  for span in spans:
    secs[span.state] = secs.get(span.state, 0.0) + span.secs
  dropped = series.total(events, 'num_dropped')
  applied = series.total(events, 'num_applied')
  if dropped:
    _move(secs, DROPPED, dropped / (dropped + applied))
  return secs


def _move_redone(tasks: Mapping[str, dict[str, float]],
                 steps: Mapping[str, int | None]) -> None:
  """Moves the time of lost steps to their cause, by one share for all tasks."""
  redone = steps['redone_steps']
  if redone:
    kept = steps['last_step'] - steps['first_step']
    for secs in tasks.values():
      _move(secs, REDONE, redone / (kept + redone))


def _move(secs: dict[str, float], cause: str, share: float) -> None:
  training = secs.get(timeline.TRAINING, 0.0)
  secs[timeline.TRAINING] = training * (1 - share)
  secs[cause] = training * share


def balance(run: run_data.RunData,
            steps: Mapping[str, int | None]) -> dict[str, Any] | None:
  """Returns the balance of the batches, or None if the events lack the unit.

    made + unreported = kept + dropped + undone

  `steps` has the first and last global step, and the repeated ones. Tasks that
  were lost made the `unreported` batches after their last events. If no task
  was lost, `undone` is exact; if nothing was undone, `unreported` is. Otherwise
  both are the least possible. `lost` has the cause of each unfinished step.
  """
  tasks = {task: run.events_of[task] for task in run.training_tasks}
  units = {event.details.get('step_counts') for events in tasks.values()
           for event in events if event.name == 'training' and
           event.kind == record.BEGIN}
  if len(units) != 1 or None in units:
    return None
  unit, = units
  key = 'num_exchanges' if unit == 'exchanges' else 'num_steps'
  made, dropped = ({task: series.total(events, name)
                    for task, events in tasks.items()}
                   for name in (key, 'num_dropped'))
  lost = {task: list(_unfinished(events)) for task, events in tasks.items()}
  # A step that all tasks make together has a batch of each.
  share = len(tasks) if unit == 'rounds' else 1
  kept = (steps['last_step'] - steps['first_step']) * share
  surplus = sum(made.values()) - sum(dropped.values()) - kept
  undone = max(surplus, steps['redone_steps'] * share)
  return {
      'unit': unit, 'made': made, 'unreported': undone - surplus,
      'kept': kept, 'dropped': dropped, 'undone': undone,
      'lost': {task: ends for task, ends in lost.items() if ends}}


def _unfinished(events: Sequence[record.Event]) -> Iterator[str]:
  """Yields the cause of each step of a task that may be unfinished."""
  for event in events:
    if event.details.get('what') == 'session':
      yield _SESSION
  for own in record.by_process(events):
    kinds = [event.kind for event in own if event.name == 'training']
    if kinds and kinds[-1] != record.END:
      details = own[-1].details
      yield str(details.get('fault') or details.get('error') or _NO_END)


def balance_tables(section: Mapping[str, Any] | None) -> list[panel.Table]:
  """Returns the balance as rows; nothing without one."""
  if section is None:
    return []
  made, dropped, lost = (section[key] for key in ('made', 'dropped', 'lost'))
  ends = [(task, end) for task, of_task in lost.items() for end in of_task]
  gone = [pair for pair in ends if pair[1] != _SESSION]
  rows = [
      ('made, as the tasks reported', sum(made.values()), _by_task(made)),
      ('+ made after the last report of a lost task', section['unreported'],
       _named(gone)),
      ('= kept: counted by the global step', section['kept'], ''),
      ('+ dropped as stale', sum(dropped.values()), _by_task(dropped)),
      ('+ undone by a restore, or not finite', section['undone'], ''),
      ('perhaps lost, one in each step that a fault ended', len(ends),
       _named(ends))]
  return [panel.Table(
      ('exchanges' if section['unit'] == 'exchanges' else 'batches', 'number',
       'tasks'), [(label, f'{number:,}', text)
                  for label, number, text in rows])]


def _named(ends: Sequence[tuple[str, str]]) -> str:
  return '; '.join(
      f'{task}: {end}' + (f' ({number} times)' if number > 1 else '')
      for (task, end), number in collections.Counter(ends).items())


def _by_task(numbers: Mapping[str, int]) -> str:
  return ', '.join(f'{task} {number:,}' for task, number in numbers.items()
                   if number)


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
       if section['num_steps'] else []) + balance_tables(section['batches']),
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
