# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's first log lines: programs hide them, importers keep them."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tfplugin import _program_logging

_ROOT = pathlib.Path(__file__).absolute().parents[1]


@pytest.mark.parametrize('command, is_own', [
    (['python', '-I', '/opt/bin/tfplugin-launch', '--', 'program'], True),
    (['python', '-m', 'tfplugin.bin.role', 'x.json'], True),
    (['python', '-m', 'tfplugin'], True),
    (['python', '-m', 'tfplugin_of_another'], False),
    (['python', '-m', 'pytest', 'tfplugin.bin.train'], False),
    (['python', 'train.py'], False),
    (['python'], False),
    ([], False),
])
def test_programs_are_told_by_their_command(command, is_own):
  assert _program_logging.is_own_program(command) == is_own


@pytest.mark.sampled(4)
@pytest.mark.parametrize('level', [None, '0'])
def test_a_program_says_nothing_before_its_own_lines(level):
  environment = {name: value for name, value in os.environ.items()
                 if name != 'TF_CPP_MIN_LOG_LEVEL'}
  if level:
    environment['TF_CPP_MIN_LOG_LEVEL'] = level
  ended, bare = (subprocess.run(
      [sys.executable, *command], cwd=_ROOT, env=environment,
      capture_output=True, text=True, timeout=120) for command in (
          ['-m', 'tfplugin.bin.train', 'unknown'], ['-c', 'import tensorflow']))
  assert 'Unknown arguments: unknown' in ended.stderr
  # Newer ones say nothing from there when they are imported.
  assert ('tensorflow/core' in ended.stderr) == (
      level == '0' and 'tensorflow/core' in bare.stderr)


def test_python_3_9_knows_its_command_too(monkeypatch):
  command = getattr(sys, 'orig_argv', None)
  monkeypatch.delattr(sys, 'orig_argv', raising=False)
  found = _program_logging.own_command()
  assert found and command in (found, None)


def test_what_newer_tensorflow_says_of_the_machine_is_dropped():
  program = textwrap.dedent('''
      import os, runpy, sys
      # By its file: the package would import TensorFlow, which has its say.
      runpy.run_path('tfplugin/_program_logging.py')['filter_stderr']()
      os.write(2, b"""WARNING: All log messages before absl::InitializeLog() is
      I0000 00:00:1795744168.053723    3411 port.cc:153] oneDNN custom
      E0000 00:00:1795744204.166487    4937 cuda_platform.cc:52] failed call
      E0000 00:00:1795744204.166487    4937 save.cc:52] no space left
      """.replace(b"      ", b""))
      sys.stderr.write("ours\\n")
      os.write(2, b"without an end")
      ''')
  ended = subprocess.run(
      [sys.executable, '-c', program], cwd=_ROOT, capture_output=True,
      text=True, timeout=120)
  assert sorted(ended.stderr.splitlines()) == [
      'E0000 00:00:1795744204.166487    4937 save.cc:52] no space left',
      'ours', 'without an end']
