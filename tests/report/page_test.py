# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page has all panels and the numbers of report.json, and no network."""

import html.parser
import json
import time

import pytest

from tests.report import hand_written
from tfplugin.report import page
from tfplugin.report import panel
from tfplugin.report import timeline
from tfplugin.report import writing
from tfplugin.report.reading import run_data


class _Parser(html.parser.HTMLParser):
  """Collects the sections, the numbers, and what would be loaded."""

  def __init__(self, text):
    super().__init__()
    self.sections, self.numbers, self.loaded, self.plots = [], {}, [], []
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    if tag == 'section':
      self.sections.append(attributes['id'])
    if attributes.get('class') == 'plot':
      self.plots.append(attributes['id'])
    if 'data-path' in attributes:
      self.numbers[attributes['data-path']] = json.loads(
          attributes['data-value'])
    self.loaded += [attributes[key] for key in ('src', 'data', 'poster')
                    if key in attributes]
    if tag == 'link':
      self.loaded.append(attributes['href'])


def _report(tmp_path):
  return json.loads(json.dumps(writing.measure(run_data.read(tmp_path))))


@pytest.fixture
def chaos(tmp_path):
  hand_written.write_run_of_all_panels(tmp_path)
  return _report(tmp_path)


def test_all_panels_and_their_numbers(chaos):
  parser = _Parser(page.render(chaos))
  assert parser.sections == list(page.PANELS)
  assert {plot.rpartition('-')[0] for plot in parser.plots} == (
      set(page.PANELS) - {'settings'})
  assert parser.numbers['speed/goodput'] == pytest.approx((29 + 32 / 3) / 76)
  for path, value in parser.numbers.items():
    told = chaos
    for key in path.split('/'):
      told = told[key]
    assert told == value, path
  assert len(parser.numbers) > 10


def test_nothing_is_loaded_from_elsewhere(chaos):
  assert _Parser(page.render(chaos)).loaded == []


def test_a_text_of_the_run_is_no_part_of_the_page(tmp_path):
  evil = '</script><script>alert(1)</script>'
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'dying', error='E',
                                   message=evil))
  text = page.render(_report(tmp_path))
  assert evil not in text and '&lt;script&gt;alert' in text


def test_a_run_of_one_event_has_two_panels_and_says_what_is_missing(tmp_path):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'starting', 'begin'))
  report = _report(tmp_path)
  text = page.render(report)
  assert _Parser(text).sections == ['timeline', 'settings']
  assert text.count('<details>') == 1
  for name in page.PANELS:
    for missing in report[name]['missing']:
      assert missing.split(':')[0] in text


def test_the_title_says_what_the_run_was_and_how_it_ended(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  hand_written.write_scalars(tmp_path / 'eval', 'accuracy', (9, 100, 0.5),
                             (39, 200, 0.9716))
  text = page.render(_report(tmp_path))
  # See test_all_panels_and_their_numbers: (29 + 32 / 3) / 76.
  outcome = 'finished at step 200, accuracy 97.2%, goodput 52%, 1 fault'
  assert f'<title>drop_stale: {outcome}</title>' in text
  date = time.strftime('%Y-%m-%d %H:%M', time.localtime(hand_written.START))
  assert f'<h1>drop_stale, {date}</h1><p class="outcome">{outcome}</p>' in text
  assert '<th>session</th>' not in text


def test_a_run_that_was_resumed_shows_all_its_sessions(tmp_path):
  event = hand_written.event
  for session, (start, first, last) in enumerate(
      ((0, 1, 100), (1000, 101, 250)), 1):
    hand_written.write_events(tmp_path, *(
        one._replace(session=session) for one in (
            event(start, 'chief:0', 'starting', 'begin', pid=session),
            event(start + 5, 'chief:0', 'training', 'begin', pid=session,
                  step=first, num_steps=1),
            hand_written.sample(start + 6, 'chief:0', first, session / 2,
                                {'elastic distance': session}, session),
            event(start + 10, 'chief:0', 'training', 'end', pid=session,
                  step=last, num_steps=last - first + 1, steps_per_sec=20.0),
            event(start + 11, 'chief:0', *(
                ('stopped',) if session == 1 else ('ended',)), pid=session,
                  step=last, saved_step=last))))
  for name, wrapper in (('train_options-1.json', 'elastic_average'),
                        ('train_options.json', 'drop_stale')):
    (tmp_path / name).write_text(json.dumps({'wrapper': wrapper}))
  report = _report(tmp_path)
  assert [(s['number'], s['first_step'], s['last_step'], s['outcome'])
          for s in report['outcome']['sessions']] == [
              (1, 1, 100, 'stopped on request at step 100, saved '
               'model.ckpt-100, the same command continues'),
              (2, 101, 250, 'finished at step 250')]
  assert report['elastic']['workers']['chief:0']['distance']['y'] == [1.0, 2.0]
  # 11 s each, and of the pause of 989 s ten: the curves keep their width.
  assert report['timeline']['wall_secs'] == 11 + 10 + 11
  assert report['elastic']['workers']['chief:0']['distance']['x'] == [6, 27]
  assert [s['start_time'] - hand_written.START
          for s in report['outcome']['sessions']] == [0, 1000]
  assert report['speed']['num_steps'] == 250
  text = page.render(report)
  for cell in ('elastic_average', 'drop_stale', '1 to 100', '101 to 250',
               'finished at step 250'):
    assert f'<td>{cell}</td>' in text


@pytest.mark.parametrize('last, outcome', [
    (('dying', {'error': 'E', 'message': ''}), 'failed at step 9'),
    (('saving', {}), 'still running, or was killed at step 9'),
    (('ended', {}), 'finished at step 9')])
def test_how_a_run_ended(tmp_path, last, outcome):
  name, details = last
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'chief:0', 'training', 'begin', step=9),
      hand_written.event(1, 'chief:0', name, **details))
  assert _report(tmp_path)['outcome']['text'].startswith(outcome)


def test_bars_are_where_the_states_were(chaos):
  plot, = timeline.draw(chaos['timeline']).figures
  dead, = (trace for trace in plot.data if trace.name == 'dead')
  assert (dead.y, dead.base, dead.x) == (('worker:0',), (13,), (7,))
  fault, = (trace for trace in plot.data if trace.name == 'fault')
  assert (fault.y, fault.x) == (('worker:0',), (13,))


def test_many_short_saves_become_one_bar_and_deaths_stay(tmp_path):
  hand_written.write_events(tmp_path, *(
      hand_written.event(secs, 'chief:0', 'saving', kind) for i in range(9999)
      for secs, kind in ((i, 'begin'), (i + 0.01, 'end'))))
  hand_written.write_events(
      tmp_path, hand_written.event(9998.5, 'chief:0', 'dying'),
      hand_written.event(9998.6, 'chief:0', 'starting', 'begin', pid=2),
      hand_written.event(10000, 'chief:0', 'ended', pid=2))
  plot, = timeline.draw(_report(tmp_path)['timeline']).figures
  shown = {trace.name: len(trace.x) for trace in plot.data}
  assert shown['dead'] == 1
  assert sum(shown.values()) < 3000


def test_a_bar_ends_where_many_short_states_follow(tmp_path):
  told = [(0, 'chief:0', 'training', 'begin'), (5, 'chief:0', 'training')]
  told += [(secs, 'chief:0', 'saving', kind) for i in range(10, 9990, 3)
           for secs, kind in ((i, 'begin'), (i + 0.02, 'end'))]
  hand_written.write_events(
      tmp_path, *(hand_written.event(*e) for e in told if e[0] < 1000),
      hand_written.event(1000, 'chief:0', 'coming_back', what='session'),
      *(hand_written.event(*e) for e in told if e[0] > 1000),
      hand_written.event(10000, 'chief:0', 'ended'))
  plot, = timeline.draw(_report(tmp_path)['timeline']).figures
  shown = {trace.name: list(zip(trace.base, trace.x)) for trace in plot.data
           if trace.type == 'bar'}
  (start, secs), = shown.pop('session lost')
  assert start + secs == 1000 and secs < 3
  # Saves take two of 300 s: each place on the page has trained for longer.
  assert sum(secs for _, secs in shown['training']) > 9990


@pytest.mark.parametrize('count, mode', [(500, 'lines+markers'),
                                         (501, 'lines')])
def test_many_points_have_no_markers(count, mode):
  plot = panel.figure('', '', '')
  curve = {'x': list(range(count)), 'y': [1.0] * count}
  panel.lines(plot, {'a': curve, 'b': curve}, mode='lines+markers')
  assert [trace.mode for trace in plot.data] == [mode] * 2


def test_a_value_between_gaps_is_drawn():
  plot = panel.figure('', '', '')
  panel.lines(plot, {
      'a': {'x': list(range(8)), 'y': [5, None, 6, None, 7, 8, None, 9]},
      'b': {'x': [0, 1], 'y': [1, 2]}})
  line, lone, other = plot.data
  assert (lone.x, lone.y, lone.mode) == ((0, 2, 7), (5, 6, 9), 'markers')
  assert lone.marker.color == line.line.color != other.line.color
  # The legend has one name, which hides both.
  assert (line.legendgroup, lone.legendgroup, lone.showlegend) == (
      'a', 'a', False)
