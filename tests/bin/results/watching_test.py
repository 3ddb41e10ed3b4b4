# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run is followed in its events, tasks that come later included."""

import io

import pytest
from rich import console

from tests.report import hand_written
from tfplugin.bin.results import watching

event = hand_written.event
START = hand_written.START


def test_rows_follow_the_events(tmp_path):
  hand_written.write_events(
      tmp_path, event(0, 'chief:0', 'training', 'begin', step=1),
      event(5, 'chief:0', 'training', step=51, steps_per_sec=10.04),
      event(5, 'chief:0', 'exchanging', step=51, num_exchanges=5))
  watch = watching.Watch(str(tmp_path))
  assert watching.rows(watch.states, START + 8) == [
      ('chief:0', '51', '10.0', '5 exchanges',
       'is training, step 51; its last word came 3 s ago')]
  hand_written.write_events(
      tmp_path, event(9, 'worker:0', 'dying', error='ValueError',
                      message='why\nmore'))
  watch.update()
  assert watching.rows(watch.states, START + 9)[1] == (
      'worker:0', '', '', '', 'died: ValueError: why')
  assert not watching.is_over(watch.states)


def test_a_run_is_over_when_all_that_train_have_ended(tmp_path):
  hand_written.write_events(tmp_path, event(0, 'ps:0', 'starting', 'begin'),
                            event(5, 'chief:0', 'ended'))
  assert watching.is_over(watching.Watch(str(tmp_path)).states)


@pytest.mark.parametrize('width', [20, 120])
def test_a_terminal_has_a_table_that_fits(tmp_path, width):
  hand_written.write_chaos_run(tmp_path)
  out = io.StringIO()
  watching.follow_live(
      watching.Watch(str(tmp_path)),
      console.Console(file=out, force_terminal=True, width=width,
                      color_system=None))
  assert 'worker:0' in out.getvalue()
  assert ('25.0% dropped' in out.getvalue()) == (width == 120)


def test_a_directory_without_a_run_is_refused(tmp_path):
  with pytest.raises(ValueError, match='`run_dir` must be'):
    watching.Watch(str(tmp_path))
