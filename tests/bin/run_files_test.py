# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the paths of a run's files."""

import pytest

from tests.report import hand_written
from tfplugin.bin import run_files


def test_a_model_dir_is_of_one_run_at_a_time(tmp_path):
  with run_files.reserved(tmp_path / 'run'):
    with pytest.raises(RuntimeError, match='model_dir is in use'):
      with run_files.reserved(tmp_path / 'run'):
        pass
  with run_files.reserved(tmp_path / 'run'):
    pass


def test_sessions_are_counted_and_nothing_of_them_is_deleted(tmp_path):
  contents = {}
  for session in (1, 2, 3):
    with run_files.reserved(tmp_path) as number:
      assert number == session
    assert contents == {path: path.read_bytes() for path in contents}
    hand_written.write_events(tmp_path, hand_written.event(
        session, 'worker:1', 'ended')._replace(session=session))
    contents = {path: path.read_bytes() for path in tmp_path.rglob('*')
                if path.suffix == '.jsonl'}
    assert contents
