# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program writes the report and names its files."""

from __future__ import annotations

import pytest
from absl import app
from absl.testing import flagsaver

from tests.report import hand_written
from tfplugin.bin import report


def test_files_are_named(tmp_path, capsys):
  hand_written.write_chaos_run(tmp_path)
  report.main(['program', str(tmp_path)])
  assert capsys.readouterr().out.splitlines() == [
      f'{tmp_path}/report/{name}'
      for name in ('report.json', 'trace.json', 'report.html')]


def test_another_directory_and_no_page(tmp_path, capsys):
  hand_written.write_chaos_run(tmp_path)
  with flagsaver.flagsaver(output_dir=str(tmp_path / 'out'), page=False):
    report.main(['program', str(tmp_path)])
  assert capsys.readouterr().out.splitlines() == [
      f'{tmp_path}/out/report.json', f'{tmp_path}/out/trace.json']
  assert not (tmp_path / 'report').exists()


def test_pictures_of_no_page_are_refused(tmp_path):
  with flagsaver.flagsaver(png=True, page=False):
    with pytest.raises(app.UsageError, match='Received: --png --nopage'):
      report.main(['program', str(tmp_path)])


@pytest.mark.parametrize('paths', [(), ('a', 'b')])
def test_one_path_is_needed(paths):
  with pytest.raises(app.UsageError, match='one path, RUN_DIR'):
    report.main(['program', *paths])


def test_a_directory_without_a_run_is_refused(tmp_path):
  with pytest.raises(ValueError, match='RUN_DIR: no '):
    report.main(['program', str(tmp_path)])
