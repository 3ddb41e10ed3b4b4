# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher's command line."""

import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def _run(*arguments):
  return subprocess.run(
      [sys.executable, '-m', 'tfplugin.bin.launch', *arguments], cwd=_ROOT,
      capture_output=True, text=True, timeout=120)


def test_without_a_program_it_says_how_to_call_it():
  ended = _run('--workers=2')
  assert ended.returncode == 1
  assert 'tfplugin-launch --workers=2 -- python program.py' in ended.stderr


@pytest.mark.parametrize('separator', [['--'], []])
def test_the_programs_own_flags_are_its_own(tmp_path, separator):
  ended = _run(
      '--workers=0', '--ps=0', f'--logs_dir={tmp_path}', *separator,
      sys.executable, '-c', 'import sys; print("got", sys.argv[1:])',
      '--workers=7')
  assert ended.returncode == 0
  assert "chief:0| got ['--workers=7']" in ended.stdout
