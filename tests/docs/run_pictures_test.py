# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pictures of runs that the pages show can be made."""
# BUILD data: //:sources

import re

import pytest

from build_defs import run_pictures
from tests.docs import pages
from tfplugin.bin import techniques
from tfplugin.faults import language
from tfplugin.report import page


def _shown():
  return [shown for path in pages.DOCS.glob('wrappers/*.md')
          for shown in re.findall(r'^:::\{run-picture\} (\w+)$',
                                  path.read_text(), re.M)]


def test_each_run_is_shown_and_has_that_panel():
  assert sorted(_shown()) == sorted(run_pictures.RUNS)
  assert {run.panel for run in run_pictures.RUNS.values()} <= set(page.PANELS)


@pytest.mark.parametrize('run', run_pictures.RUNS)
def test_a_run_is_of_a_wrapper_and_meets_one_fault(run):
  assert run in techniques.TECHNIQUES
  arguments = dict(argument.split('=', 1)
                   for argument in run_pictures.RUNS[run].arguments)
  fault, = language.parse(arguments['--inject'])
  steps = int(arguments['--steps'])
  assert 0 < fault.step < steps
  assert f"'--inject={fault}" in run_pictures.command(run)


def test_the_picture_of_the_readme_is_small():
  text = (pages.DOCS.parent / 'README.md').read_text(encoding='utf-8')
  path = run_pictures.README_PICTURE
  assert f']({path.relative_to(pages.DOCS.parent)})' in text
  assert path.read_bytes().startswith(b'\x89PNG')
  assert path.stat().st_size < 150_000


def test_pictures_that_are_there_stay(monkeypatch, tmp_path):
  monkeypatch.setattr(run_pictures, 'DIRECTORY', tmp_path)
  monkeypatch.setattr(run_pictures, 'README_PICTURE', tmp_path / 'report.png')
  monkeypatch.setattr('tfplugin.report.pictures.browser', lambda: 'chromium')
  made = []

  def make(name):
    made.append(name)
    run_pictures.picture(name).write_text(name)

  monkeypatch.setattr(run_pictures, '_make', make)
  run_pictures.picture('towers').write_text('kept')
  for _ in range(2):
    run_pictures.main([])
  assert made == [name for name in run_pictures.RUNS if name != 'towers']
  assert (tmp_path / 'report.png').read_text() == 'elastic_average'
  assert run_pictures.picture('towers').read_text() == 'kept'


def test_without_a_browser_nothing_is_made(monkeypatch, capsys, tmp_path):
  monkeypatch.setattr(run_pictures, 'DIRECTORY', tmp_path / 'runs')
  monkeypatch.setenv('PATH', str(tmp_path))
  run_pictures.main([])
  assert 'apt-get install chromium' in capsys.readouterr().out
  assert not list(tmp_path.iterdir())


def test_runs_are_chosen_by_name(monkeypatch, tmp_path):
  monkeypatch.setattr(run_pictures, 'DIRECTORY', tmp_path)
  monkeypatch.setattr(run_pictures, 'README_PICTURE', tmp_path / 'report.png')
  monkeypatch.setattr('tfplugin.report.pictures.browser', lambda: 'chromium')
  made = []
  monkeypatch.setattr(run_pictures, '_make', made.append)
  run_pictures.main(['towers', 'drop_stale'])
  assert made == ['towers', 'drop_stale']
  assert not run_pictures.README_PICTURE.exists()
  with pytest.raises(SystemExit, match='`RUN` must be .*towers.*: tower$'):
    run_pictures.main(['towers', 'tower'])
  assert made == ['towers', 'drop_stale']
