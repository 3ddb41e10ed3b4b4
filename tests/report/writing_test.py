# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Three files are written; two of them without plotly."""

import importlib.util
import json

import pytest

from tests.report import hand_written
from tfplugin.report import writing


def test_all_files_are_written(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  files = writing.write(tmp_path)
  assert {name: str(path) for name, path in files.items()} == {
      name: f'{tmp_path}/report/{name}'
      for name in ('report.json', 'trace.json', 'report.html')}
  report = json.loads(files['report.json'].read_text())
  assert report['speed']['redone_steps'] == 0
  assert '<section id="settings">' in files['report.html'].read_text()


def test_without_plotly_the_numbers_are_written(tmp_path, monkeypatch):
  hand_written.write_chaos_run(tmp_path)
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(RuntimeError, match=r"pip install 'tfplugin\[report\]'"):
    writing.write(tmp_path, tmp_path / 'out')
  assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == [
      'report.json', 'trace.json']
