# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the launcher accepts; tests/distributed has it launch."""

import pytest

from tfplugin.bin import launch_lib


@pytest.mark.parametrize('settings, message', [
    ({'command': ()}, 'program to start must follow the flags'),
    ({'command': ('no-such-program',)}, "'no-such-program'.*is not found"),
    ({'workers': -1}, '`workers` must be an integer of at least 0'),
    ({'ps': 0.5}, '`ps` must be an integer'),
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
