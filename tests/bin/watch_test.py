# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program shows a run that is over, and ends."""

from __future__ import annotations

import pytest
from absl import app
from absl.testing import flagsaver

from tests.report import hand_written
from tfplugin.bin import watch


def test_a_run_that_is_over_is_shown_once(tmp_path, capsys):
  hand_written.write_chaos_run(tmp_path)
  watch.main(['program', str(tmp_path)])
  assert capsys.readouterr().out.splitlines() == [
      'task      step  steps/s  told           does',
      'chief:0   200   6.0      0.0% dropped   finished',
      'worker:0  200   2.0      25.0% dropped  finished']


def test_a_run_that_goes_on_is_shown_once_if_asked(tmp_path, capsys):
  hand_written.write_events(
      tmp_path, hand_written.event(0, 'worker:0', 'waiting', 'begin',
                                   on=['chief:0']))
  with flagsaver.flagsaver(once=True):
    watch.main(['program', str(tmp_path)])
  assert 'waits for chief:0' in capsys.readouterr().out


@pytest.mark.parametrize('paths', [(), ('a', 'b')])
def test_one_path_is_needed(paths):
  with pytest.raises(app.UsageError, match='one path, RUN_DIR'):
    watch.main(['program', *paths])
