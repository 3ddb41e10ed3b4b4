# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Section on the timeline: successive states of each task, and marks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from tfplugin.events import record
from tfplugin.faults import language
from tfplugin.report import panel
from tfplugin.report.reading import run_data

STARTING = 'starting'
WAITING = 'waiting'
TRAINING = 'training'
SAVING = 'saving'
SERVING = 'serving'
ENDING = 'ending'
DEAD = 'dead'
AWAY = 'session lost'
SILENT = 'silent'
# A task that writes no events while it serves, and restarted.
UNKNOWN = 'serving or dead'

# `training` is reported once in 5 s: a task without three reports is silent.
SILENT_SECS = 15.0
_OF_KILLS = ('A killed task is shown as dead from its last event on, at most '
             '5 s before the kill; a recorded fault has its exact time. ')
# A longer time without a living task is a pause between two runs.
BETWEEN_RUNS_SECS = 120.0
_MARKS = {'injecting': 'fault', 'saving': 'checkpoint', 'dying': 'error',
          'coming_back': 'restart', 'stopping': 'stop', 'stopped': 'stop',
          'ended': 'end', 'joined': 'join', 'left': 'leave'}
# The colour of each state, in the order of the page.
_COLORS = {
    STARTING: '#bab0ac', WAITING: '#eeca3b', TRAINING: '#54a24b',
    SAVING: '#4c78a8', SERVING: '#9ecae9', ENDING: '#d8d0cc', AWAY: '#ff9d98',
    DEAD: '#c0392b', SILENT: '#79706e', UNKNOWN: '#d6a5c9'}
# Symbol, colour.
_SYMBOLS = {
    'checkpoint': ('triangle-up', '#1f4e79'), 'fault': ('x', '#c0392b'),
    'error': ('star', '#c0392b'), 'restart': ('circle-open', '#000000'),
    'stop': ('square-open', '#000000'),
    'join': ('triangle-right', '#54a24b'),
    'leave': ('triangle-left', '#79706e'),
    'end': ('line-ns-open', '#000000')}
_ROW = 30
# The width of the plot; a narrower span cannot be seen.
_NUM_PIXELS = 1500
_SHOWN_ALWAYS = (DEAD, AWAY, UNKNOWN)


class Span(NamedTuple):
  """A time in which a task had one state.

  `start` and `end` are in seconds since the run's first event; `on` names the
  tasks that it waited for.
  """

  state: str
  start: float
  end: float
  on: tuple[str, ...] = ()

  @property
  def secs(self) -> float:
    """The duration."""
    return self.end - self.start


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns the states and the marks of each task."""
  spans, marks = spans_of(run), _marks(run)
  return {
      'start_time': run.start,
      'wall_secs': run.end - run.start,
      'states': list(_COLORS),
      'tasks': {task: {
          'spans': [span._asdict() for span in spans[task]],
          'marks': marks[task],
          'processes': len(record.by_process(events)),
      } for task, events in run.events_of.items()},
      'missing': [],
  }


def spans_of(run: run_data.RunData) -> dict[str, list[Span]]:
  """Returns the spans of each task."""
  return _without_pauses(
      {task: _task_spans(task, run) for task in run.events_of})


def _task_spans(task: str, run: run_data.RunData) -> list[Span]:
  tracker = _Tracker(task, run.start, [
      e.time for e in run.reading.events if e.name == 'injecting' and
      str(e.details.get('fault')).startswith(
          tuple(f'{kind} {task} ' for kind in language.ENDINGS))])
  for event in run.reading.events:
    # The chief tells that a worker, which joined, has died.
    if event.task == task or (
        event.name == 'left' and event.details.get('worker') == task):
      tracker.take(event)
  return tracker.finish(run.end)


class _Tracker:
  """Tracker of the states of one task."""

  def __init__(self, task: str, start: float, kills: Sequence[float]):
    self._serves = task.partition(':')[0] in ('ps', 'evaluator')
    self._start = start
    self._kills = kills
    self._spans: list[Span] = []
    self._open: dict[str, record.Event] = {}
    self._last = None
    self._has_trained = False
    # Its state, the start of the state, and the tasks that it waits for.
    self._doing = (None, start, ())

  def take(self, event: record.Event) -> None:
    """Processes the next event."""
    is_session = (event.name == 'coming_back' and
                  event.details.get('what') == 'session')
    if self._last is not None and (event.task != self._last.task or
                                   record.is_new_process(self._last, event)):
      self._die(event.time)
      self._has_trained = False
    elif is_session:
      self._doing = (AWAY, self._doing[1], ())
    self._add(event.time)
    if is_session:
      # Its steps continue at once.
      self._open['training'] = event
    self._follow(event)
    state, on = self._next(event)
    self._doing = (state, event.time, on)
    self._last = event

  def _die(self, time: float) -> None:
    """Records a death since the last event, and a restart at `time`."""
    state, since, _ = self._doing
    self._open.clear()
    killed = [t for t in self._kills if since <= t <= time]
    if state is None or record.is_done(self._last):
      self._doing = (None, time, ())
      return
    if killed:
      self._add(killed[-1])
      self._doing = (DEAD, killed[-1], ())
    else:
      self._doing = (UNKNOWN if state == SERVING else DEAD, since, ())

  def finish(self, end: float) -> list[Span]:
    """Returns the spans; an open one lasts until the end of the run."""
    is_quiet = end - self._last.time > SILENT_SECS
    if is_quiet and self._doing[0] == TRAINING:
      self._doing = (SILENT, *self._doing[1:])
    if not record.is_done(self._last):
      self._add(end)
    return self._spans

  def _follow(self, event: record.Event) -> None:
    if event.kind == record.BEGIN:
      self._open[event.name] = event
    elif event.kind == record.END:
      self._open.pop(event.name, None)
    if event.name == 'training':
      self._has_trained = True
      # A lost session continues without a begin.
      if event.kind == record.INSTANT:
        self._open.setdefault('training', event)

  def _next(self, event: record.Event) -> tuple:
    if event.name in ('ended', 'stopped', 'left'):
      return None, ()
    if event.name == 'dying':
      return DEAD, ()
    if not self._open:
      if self._serves:
        return SERVING, ()
      return (ENDING if self._has_trained else STARTING), ()
    inner = list(self._open)[-1]
    if inner == WAITING and self._serves:
      return SERVING, ()
    return inner, tuple(self._open[inner].details.get('on', ()))

  def _add(self, time: float) -> None:
    """Adds the span of the current state until `time`."""
    state, since, on = self._doing
    if state is None:
      return
    start, end = since - self._start, time - self._start
    before = self._spans[-1] if self._spans else None
    if before and (before.state, before.on, before.end) == (state, on, start):
      self._spans[-1] = before._replace(end=end)
    elif end > start:
      self._spans.append(Span(state, start, end, on))


def _without_pauses(spans: dict[str, list[Span]]) -> dict[str, list[Span]]:
  """Cuts long times without a living task out of the spans."""
  alive = sorted((s.start, s.end) for task in spans.values() for s in task
                 if s.state not in (DEAD, SILENT))
  pauses, latest = [], 0.0
  for start, end in alive:
    if start - latest > BETWEEN_RUNS_SECS:
      pauses.append((latest, start))
    latest = max(latest, end)
  if not pauses:
    return spans
  return {task: [part for span in found for part in _parts(span, pauses)]
          for task, found in spans.items()}


def _parts(span: Span, pauses: list[tuple[float, float]]) -> list[Span]:
  """Returns the parts of a span outside the pauses."""
  parts = [span]
  for start, end in pauses:
    parts = [piece for part in parts for piece in (
        part._replace(end=min(part.end, start)),
        part._replace(start=max(part.start, end))) if piece.secs > 0]
  return parts


def _marks(run: run_data.RunData) -> dict[str, list[dict[str, Any]]]:
  """Returns the marks of each task, which is a fault's victim, or a worker."""
  marks = {task: [] for task in run.events_of}
  for event in run.reading.events:
    kind = _MARKS.get(event.name)
    if kind is None or event.name == 'saving' and event.kind != record.BEGIN:
      continue
    text = _text(kind, event)
    about = event.details.get('worker')
    if kind == 'fault':
      about = ''.join(text.split()[1:2])
    task = about if about in marks else event.task
    marks[task].append({'kind': kind, 'time': event.time - run.start,
                        'step': event.step, 'text': text})
  return marks


def _text(kind: str, event: record.Event) -> str:
  details = event.details
  if event.name == 'stopped':
    return record.describe_end(event)
  return {
      'fault': details.get('fault', ''),
      'checkpoint': f'checkpoint of step {event.step}',
      'error': f'{details.get("error")}: {details.get("message", "")[:200]}',
      'restart': f'new {details.get("what")}',
      'stop': f'asked to stop by {details.get("signal")}',
      'end': 'done',
      'join': f'{details.get("worker")} is present',
      'leave': f'{details.get("worker")} is no longer present',
  }[kind]


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `timeline` of report.json."""
  tasks = section['tasks']
  plot = panel.figure('', panel.SECS, '', height=170 + _ROW * len(tasks),
                      barmode='overlay', bargap=0.35)
  plot.update_layout(legend={'orientation': 'h', 'y': 1.02,
                             'yanchor': 'bottom', 'x': 0})
  plot.update_yaxes(autorange='reversed', categoryorder='array',
                    categoryarray=list(tasks))
  pixel = section['wall_secs'] / _NUM_PIXELS
  drawn = [(task, span) for task, numbers in tasks.items()
           for span in _visible(numbers['spans'], pixel)]
  for state in section['states']:
    _add_bars(plot, state,
              [(task, span) for task, span in drawn if span['state'] == state])
  has_kills = any(span['state'] == DEAD for _, span in drawn)
  for kind in _SYMBOLS:
    _add_marks(plot, kind, [
        (task, mark) for task, numbers in tasks.items()
        for mark in _apart(numbers['marks'], kind, pixel)])
  return panel.Panel(
      'Timeline of the tasks',
      f'{_OF_KILLS if has_kills else ""}Parameter servers and evaluators write '
      'no events while they serve.',
      [panel.Number('wall time, s', 'timeline/wall_secs', section['wall_secs'],
                    ',.1f')],
      [plot], missing=section['missing'])


def _visible(spans: Sequence[Mapping[str, Any]],
             pixel: float) -> list[dict[str, Any]]:
  """Returns the bars; of narrow spans in one pixel, the longest is drawn."""
  def place(numbered):
    number, span = numbered
    is_narrow = (span['end'] - span['start'] < pixel and
                 span['state'] not in _SHOWN_ALWAYS)
    return is_narrow, span['start'] // pixel if is_narrow else number
  bars: list[dict[str, Any]] = []
  for _, numbered in itertools.groupby(enumerate(spans), place):
    group = [span for _, span in numbered]
    longest = max(group, key=lambda span: span['end'] - span['start'])
    bar = {**longest, 'start': group[0]['start'], 'end': group[-1]['end']}
    before = bars[-1] if bars else None
    if (before and before['state'] == bar['state'] and
        before['on'] == bar['on'] and bar['start'] - before['end'] < pixel):
      before['end'] = bar['end']
    else:
      bars.append(bar)
  return bars


def _apart(marks: Sequence[Mapping[str, Any]], kind: str,
           pixel: float) -> list[Mapping[str, Any]]:
  """Returns the marks of a kind; of checkpoints in one place the first."""
  found, latest = [], float('-inf')
  for mark in marks:
    if mark['kind'] == kind and (kind != 'checkpoint' or
                                 mark['time'] - latest >= 4 * pixel):
      found.append(mark)
      latest = mark['time']
  return found


def _add_bars(plot: panel.Figure, state: str, pairs) -> None:
  if pairs:
    plot.add_bar(
        orientation='h', name=state, y=[task for task, _ in pairs],
        base=[span['start'] for _, span in pairs],
        x=[span['end'] - span['start'] for _, span in pairs],
        marker={'color': _COLORS[state], 'line': {'width': 0}},
        customdata=[f' for {", ".join(span["on"])}' if span['on'] else ''
                    for _, span in pairs],
        hovertemplate='%{y} ' + state + '%{customdata}<br>from %{base:.2f} s, '
                      '%{x:.2f} s long<extra></extra>')


def _add_marks(plot: panel.Figure, kind: str, pairs) -> None:
  if pairs:
    symbol, color = _SYMBOLS[kind]
    plot.add_scatter(
        mode='markers', name=kind, y=[task for task, _ in pairs],
        x=[mark['time'] for _, mark in pairs],
        text=[mark['text'] for _, mark in pairs],
        marker={'symbol': symbol, 'color': color,
                'size': 7 if kind == 'checkpoint' else 12,
                'line': {'width': 2, 'color': color}},
        hovertemplate='%{y} at %{x:.2f} s<br>%{text}<extra></extra>')
