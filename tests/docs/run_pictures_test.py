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
          for shown in re.findall(r'^:::\{run-picture\} (\w+) (\w+)$',
                                  path.read_text(), re.M)]


def test_each_run_is_shown_and_has_that_panel():
  assert sorted(run for run, _ in _shown()) == sorted(run_pictures.RUNS)
  assert {panel for _, panel in _shown()} <= set(page.PANELS)


@pytest.mark.parametrize('run', run_pictures.RUNS)
def test_a_run_is_of_a_wrapper_and_meets_one_fault(run):
  assert run in techniques.TECHNIQUES
  fault, = language.parse(next(
      argument.partition('=')[2] for argument in run_pictures.RUNS[run]
      if argument.startswith('--inject=')))
  steps, = [int(argument.partition('=')[2])
            for argument in run_pictures.RUNS[run] if '--steps=' in argument]
  assert 0 < fault.step < steps
  assert f"'--inject={fault}" in run_pictures.command(run)


def test_without_a_browser_nothing_is_made(monkeypatch, capsys, tmp_path):
  monkeypatch.setattr(run_pictures, 'DIRECTORY', tmp_path / 'runs')
  monkeypatch.setenv('PATH', str(tmp_path))
  run_pictures.main()
  assert 'apt-get install chromium' in capsys.readouterr().out
  assert not list(tmp_path.iterdir())
