# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses over steps and seconds."""

from tests.report import hand_written
from tfplugin.report import losses
from tfplugin.report.reading import run_data

event = hand_written.event


def test_workers_and_evaluations(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  hand_written.write_scalars(tmp_path / 'eval', 'loss', (9, 100, 0.5),
                             (8, 200, 0.25))
  section = losses.measure(run_data.read(tmp_path))
  worker, chief = (section['workers'][t] for t in ('worker:0', 'chief:0'))
  assert chief['over_steps']['x'] == [5, 180]
  assert chief['over_secs']['x'] == [6, 30]
  assert chief['over_secs']['y'] == [2.0, 0.5]
  assert (chief['least'], chief['last']) == (0.5, 0.5)
  assert worker['over_secs']['y'] == [1.0, None]
  assert worker['over_secs']['num_nonfinite'] == 1
  assert (worker['least'], worker['last']) == (1.0, None)
  evaluation = section['evaluations']['eval']
  assert evaluation['over_steps']['y'] == [0.5, 0.25]
  assert evaluation['over_secs']['x'] == [8, 9]
  assert section['missing'] == []


def test_the_summary_of_the_chief_stands_in_for_samples(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  hand_written.write_scalars(tmp_path, 'loss', (1, 10, 4.0))
  section = losses.measure(run_data.read(tmp_path))
  assert section['workers']['chief:0']['over_steps']['y'] == [4.0]
  assert 'evaluator' in section['missing'][0]


def test_what_is_missing_is_said(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'chief:0', 'ended'))
  assert len(losses.measure(run_data.read(tmp_path))['missing']) == 2
