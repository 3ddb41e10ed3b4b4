# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher's settings; tests/distributed has it launch."""

import pytest

from tfplugin.bin import launch_lib


@pytest.mark.parametrize('settings, message', [
    ({'command': ()}, 'program to start must follow the flags'),
    ({'command': ('no-such-program',)}, "'no-such-program'.*is not found"),
    ({'workers': -1}, '`workers` must be an integer of at least 0'),
    ({'ps': 0.5}, '`ps` must be an integer'),
    ({'evaluator_limit_secs': -1.0}, '`evaluator_limit_secs` must be at least'),
    ({'ps_limit_secs': float('nan')}, '`ps_limit_secs` must be.*finite.*nan'),
])
def test_a_bad_setting_is_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    launch_lib.LaunchOptions(
        **{'command': ('python3',), 'logs_dir': 'logs', **settings})


def test_logs_that_cannot_be_written_are_refused(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(ValueError, match='`logs_dir` must be.*can be written to'):
    launch_lib.launch(launch_lib.LaunchOptions(
        ('python3',), str(tmp_path / 'file' / 'logs')))


def test_the_last_line_of_the_chief_is_shown_without_its_end(tmp_path):
  said = []
  launch_lib.launch(
      launch_lib.LaunchOptions(
          ('printf', 'one\ntwo'), str(tmp_path), workers=0, ps=0), said.append)
  assert said[1:] == ['chief:0| one', 'chief:0| two']
