# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program prints what the equations say."""

from __future__ import annotations

import pytest
import tensorflow as tf
from absl import app
from absl.testing import flagsaver

from tests.report import hand_written
from tfplugin.bin import network_times
from tfplugin.bin import plan
from tfplugin.events import event_log

tf1 = tf.compat.v1

# A message takes a second.
_FLAGS = dict(model_mb=1.0, step_ms=500.0, workers=1,
              link_mbit=8 / network_times.PAYLOAD)


def _lines(capsys, **changes):
  with flagsaver.flagsaver(**{**_FLAGS, **changes}):
    plan.main(['program'])
  return capsys.readouterr().out.splitlines()


def _table(lines):
  """The columns, by group and name."""
  table, group = {}, None
  for line in lines[1:-2]:
    if not line.startswith('  '):
      group = line
      continue
    table[group.partition(',')[0], group.rpartition(' ')[2],
          line[:46].strip()] = line[46:].split()
  return table


def test_a_line_for_each_wrapper_and_period(capsys):
  lines = _lines(capsys, periods=['1', '10'])
  table = _table(lines)
  assert len(table) == 4 + 3 * 4
  for name in ('asynchronous SGD; drop_stale, clip', 'SyncReplicas'):
    assert table['parameter servers', 'step', name] == ['0.4', '20.0%', '1']
  assert table['one process', 'exchange', 'towers'] == ['2', '100.0%', '5']
  # 10 steps of 1/2 s and 2 s of network; float16 1 s.
  elastic = {key[1:]: row for key, row in table.items()
             if key[0] == 'elastic_average'}
  assert elastic['float32', 'period 10'] == ['1.429', '71.4%', '3.57']
  assert elastic['float16', 'period 10'] == ['1.667', '83.3%', '4.17']
  assert elastic['float32', 'period 10, overlap'] == ['2', '100.0%', '5']
  # In parts: 1 s and an eighth.
  assert elastic['float32', 'period 1, overlap'] == ['0.8889', '44.4%', '2.22']


@pytest.mark.parametrize('changes, words', [
    ({}, 'elastic_average(communication_period=3, overlap=True): 2 steps/s, 5 '
         'times asynchronous SGD.'),
    # Exchanges of 36 s are hidden by 72 steps; of half the bytes, 36; int8 19.
    ({'model_mb': 32.0}, 'elastic_average(communication_period=19, overlap='
     "True, exchange_dtype='int8'): 2 steps/s, 129 times asynchronous SGD."),
    ({'step_ms': 20000.0}, 'asynchronous SGD or any wrapper: the network takes '
     '9% of the time.'),
    # A ring of 2 workers sends one model in the time of two.
    ({'step_ms': 10000.0, 'workers': 2}, 'cross_shard: the network takes 9% of '
     'the time.'),
])
def test_a_wrapper_is_recommended(capsys, changes, words):
  assert _lines(capsys, **changes)[-1] == f'Recommended: {words}'


def test_the_largest_variable_is_the_last_that_is_pushed(capsys):
  """A pull of 1 s, and 1 / 4 s for what is pushed after it."""
  lines = _lines(capsys, periods=['10'], largest_mb=0.25)
  # 10 / (5 + 1.25).
  assert _table(lines)[
      'elastic_average', 'float32', 'period 10'][0] == '1.6'
  with pytest.raises(app.UsageError, match='--largest_mb .* 2.0 of 1'):
    _lines(capsys, largest_mb=2.0)


@pytest.mark.parametrize('flag, value, words', [
    ('step_ms', -4.0, 'positive'), ('link_mbit', 0.0, 'positive'),
    ('workers', 0, 'positive'), ('largest_mb', 0.0, 'positive'),
    ('model_mb', float('inf'), 'positive'), ('host_ms', -1.0, 'at least 0')])
def test_what_cannot_be_is_refused_by_its_flag(capsys, flag, value, words):
  with pytest.raises(app.UsageError, match=f'`{flag}` must be {words} and fin'):
    _lines(capsys, **{flag: value})


def test_the_period_that_hides_is_named(capsys):
  assert _lines(capsys)[-2].endswith(': 3 (float32), 2 (float16), 1 (int8).')


def test_a_run_has_the_numbers_that_flags_lack(capsys, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('v', [1000, 100], use_resource=False)
    tf1.get_variable('w', [150000])
    tf1.get_variable('state', [7], trainable=False)
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 10)
  with pytest.raises(app.UsageError, match='no events'):
    _run_lines(capsys, tmp_path)
  for task, rates in (('chief:0', [2.0, 4.0]), ('worker:0', [0.5]),
                      ('ps:0', []), ('ps:1', [])):
    with event_log.recording(str(tmp_path), task):
      for rate in rates:
        event_log.write('training', step=1, num_steps=1, steps_per_sec=rate)
  first, *lines = _run_lines(capsys, tmp_path)
  assert first == (f'From {tmp_path}: --model_mb=1 --largest_mb=0.6 '
                   '--step_ms=500 --workers=2 --ps=2')
  with flagsaver.flagsaver(**{**_FLAGS, 'largest_mb': 0.6, 'workers': 2,
                              'ps': 2}):
    plan.main(['program'])
  assert lines == capsys.readouterr().out.splitlines()
  first, *_ = _run_lines(capsys, tmp_path, model_mb=3.0, step_ms=1.0, ps=1)
  assert first == f'From {tmp_path}: --workers=2'


def test_the_newest_session_counts_without_workers_that_left(
    tmp_path, monkeypatch):
  monkeypatch.setattr(plan, '_sizes', lambda unused_dir: [1000])
  event = hand_written.event
  before = [
      *(event(0, f'worker:{i}', 'training', steps_per_sec=1.0)
        for i in range(6)),
      event(0, 'chief:0', 'training', steps_per_sec=1.0),
      *(event(1, f'ps:{i}', 'starting', 'begin') for i in range(4))]
  after = [
      event(9, 'ps:0', 'starting', 'begin'),
      *(event(10, task, 'training', steps_per_sec=8.0)
        for task in ('chief:0', 'worker:0', 'worker:1', 'worker:2')),
      event(11, 'chief:0', 'left', worker='worker:0'),
      event(12, 'chief:0', 'left', worker='worker:1'),
      event(13, 'chief:0', 'joined', worker='worker:1'),
      # It has made the last step; the chief has seen that.
      event(14, 'worker:2', 'ended'),
      event(15, 'chief:0', 'left', worker='worker:2'),
      event(15, 'chief:0', 'ended')]
  hand_written.write_events(
      tmp_path, *before, *(one._replace(session=2) for one in after))
  assert plan.read_size(tmp_path) == {
      'model_mb': 1e-3, 'largest_mb': 1e-3, 'step_ms': 125.0, 'workers': 3,
      'ps': 1}


def _run_lines(capsys, run_dir, **flags):
  with flagsaver.flagsaver(link_mbit=8 / network_times.PAYLOAD, **flags):
    plan.main(['program', str(run_dir)])
  return capsys.readouterr().out.splitlines()


def test_what_is_missing_is_named():
  with flagsaver.flagsaver(model_mb=1.0):
    with pytest.raises(app.UsageError, match='--step_ms, --link_mbit, --work'):
      plan.main(['program'])


def test_one_directory_is_taken():
  with pytest.raises(app.UsageError, match='RUN_DIR .* Received: 7.45 a'):
    plan.main(['program', '7.45', 'a'])


@pytest.mark.parametrize('period', ['0', 'ten', '1.5'])
def test_a_period_is_a_number_of_steps(capsys, period):
  with pytest.raises(app.UsageError, match=f"--periods .* '{period}'"):
    _lines(capsys, periods=[period])


def _write_events(run_dir, rate):
  with event_log.recording(str(run_dir), 'chief:0'):
    event_log.write('training', step=1, num_steps=1, steps_per_sec=rate)


def test_a_run_without_a_rate_is_named(tmp_path):
  _write_events(tmp_path, 0.0)
  with pytest.raises(ValueError, match='steps per second.*--step_ms'):
    plan.read_size(tmp_path)


def test_a_run_without_a_graph_is_named(tmp_path):
  _write_events(tmp_path, 1.0)
  with pytest.raises(ValueError, match=r'no checkpoint.*--model_mb'):
    plan.read_size(tmp_path)


def test_a_graph_without_trained_variables_is_named(tmp_path):
  _write_events(tmp_path, 1.0)
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('state', [7], trainable=False)
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 10)
  with pytest.raises(ValueError, match='no trained variable'):
    plan.read_size(tmp_path)
