# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the place of a worker that joins a run."""

import json
import os

import pytest
import tensorflow as tf

from tfplugin.bin.launches import joins
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import ports
from tfplugin.events import clock
from tfplugin.events import event_log
from tfplugin.hooks.shutdown import chief_report
from tfplugin.hooks.shutdown import task_tables


@pytest.fixture(name='run')
def _run():
  """Serves a parameter server; returns its cluster, and its record."""
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  board = task_tables.Board(cluster['ps'][0])
  yield cluster, board
  board.close()
  del server


def _publish(cluster, board, max_workers):
  board.publish(json.dumps({'cluster': cluster, 'max_workers': max_workers}))


@pytest.mark.parametrize('text, value', [
    ('3', (3, None)), ('0', (0, None)), ('1:8', (1, 8)), ('0:1', (0, 1))])
def test_a_number_or_a_range_is_read(text, value):
  assert joins.RangeParser().parse(text) == value


@pytest.mark.parametrize('text', ['', 'a', '1:', ':2', '3:2', '0:0', '1:2:3',
                                  '-1'])
def test_other_forms_are_refused(text):
  with pytest.raises(ValueError, match='must be a number|MAX must be'):
    joins.RangeParser().parse(text)


def test_workers_that_join_get_the_next_numbers(run):
  cluster, board = run
  _publish(cluster, board, 3)
  # Its worker:0 has not started, and keeps its place.
  layouts = [joins.layout(cluster['ps'][0]) for _ in range(2)]
  assert [task.name for layout in layouts for task in layout.own] == [
      'worker:1', 'worker:2']
  layout = layouts[1]
  assert layout.tf_config == {'max_workers': 3, 'joins': True}
  assert layout.who == 'worker-2' and not layout.has_chief
  own = layout.cluster['worker']
  assert layout.cluster == {'ps': cluster['ps'], 'chief': cluster['chief'],
                            'worker': own}
  assert list(own) == [2] and own[2].startswith('127.0.0.1:')
  with pytest.raises(RuntimeError, match='takes at most 3 workers.*Received: '
                     'one more than worker:1, worker:2. Wait'):
    joins.layout(cluster['ps'][0])
  # Nobody gets the number of one that has left.
  board.end(['worker:1'], task_tables.LEFT)
  assert joins.layout(cluster['ps'][0]).own[0].name == 'worker:3'


def test_a_number_of_the_events_is_not_given_again(run, tmp_path):
  """The record of a parameter server that has just restarted is empty."""
  cluster, board = run
  _publish(cluster, board, 3)
  for task in ('chief:0', 'worker:0', 'worker:4', 'ps:7'):
    event_log.EventLog(tmp_path, task).write('ended')
  assert joins.layout(cluster['ps'][0], str(tmp_path)).own[0].name == 'worker:5'


def test_a_worker_that_joins_has_the_session_and_the_clock_of_the_run(
    run, monkeypatch):
  cluster, board = run
  taken = {event_log.SESSION_VARIABLE: '3', clock.VARIABLE: 'another boot 7.5'}
  for name in taken:
    monkeypatch.setenv(name, 'before')
  board.publish(json.dumps({
      'cluster': cluster, 'max_workers': 3,
      'variables': {**taken, 'ANOTHER_ONE': '1'}}))
  joins.layout(cluster['ps'][0])
  assert {name: os.environ[name] for name in taken} == taken
  assert 'ANOTHER_ONE' not in os.environ


def test_a_worker_that_is_the_chief_is_named(run):
  cluster, board = run
  cluster = {'ps': cluster['ps'], 'worker': cluster['chief']}
  _publish(cluster, board, 1)
  layout = joins.layout(cluster['ps'][0])
  assert layout.own[0].name == 'worker:1'
  assert layout.cluster['worker'][0] == cluster['worker'][0]


def test_a_fixed_run_and_one_that_has_ended_are_refused(run, monkeypatch):
  cluster, board = run
  monkeypatch.setattr(joins, '_REACH_SECS', 0.5)
  with pytest.raises(RuntimeError, match='Received: a fixed cluster. Start'):
    joins.layout(cluster['ps'][0])
  _publish(cluster, board, 3)
  board.end(['chief:0'], task_tables.FINISHED)
  with pytest.raises(chief_report.RunFinishedError, match='nothing to join'):
    joins.layout(cluster['ps'][0])


def test_at_an_address_without_an_answer_the_model_dir_tells_the_end(
    monkeypatch, tmp_path):
  monkeypatch.setattr(chief_report, 'AWAY_SECS', 0.0)
  address = f'127.0.0.1:{ports.pick_free(1)[0]}'
  for model_dir in (None, str(tmp_path)):
    with pytest.raises(RuntimeError, match=f'Nothing.*--join={address}.* '
                       'has finished, or its parameter server has not started'):
      joins.layout(address, model_dir)
  chief_report.write(str(tmp_path))
  with pytest.raises(chief_report.RunFinishedError,
                     match='The run has finished'):
    joins.layout(address, str(tmp_path))


@pytest.mark.parametrize('settings, match', [
    ({'join': 'nowhere'}, "Received: 'nowhere'. Write e.g. --join="),
    ({'join': 'a:1', 'workers': 2}, '`workers` has no effect with `join`'),
    ({'join': 'a:1', 'ps': 2}, '`ps` has no effect with `join`'),
    ({'max_workers': 2, 'ps': 0}, '--workers=MIN:2 and --ps=0.*restarts the '
     'whole group'),
])
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, match):
  with pytest.raises(ValueError, match=match):
    launch_options.LaunchOptions(('true',), str(tmp_path), **settings)


def test_every_task_of_an_open_run_is_told(tmp_path):
  options = launch_options.LaunchOptions(('true',), str(tmp_path), workers=1,
                                         max_workers=4)
  assert options.layout().tf_config == {'max_workers': 4}
