# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the program's command line; tests/distributed has it train."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tfplugin.bin import options as options_lib

pytestmark = pytest.mark.usefixtures('forking')

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def _run(*arguments):
  # A process of its own: two programs in one would define flags twice.
  return subprocess.run(
      [sys.executable, '-m', 'tfplugin.bin.train', *arguments], cwd=_ROOT,
      capture_output=True, text=True, timeout=120)


def test_each_setting_has_a_flag():
  shown = _run('--helpfull').stdout
  flags = set(re.findall(r'^ +--(?:\[no\])?(\w+)', shown, re.M))
  fields = {f.name for f in dataclasses.fields(options_lib.TrainOptions)}
  assert fields <= flags


@pytest.mark.parametrize('arguments, message', [
    (['--wrapper=towers', '--workers=2'], 'Error: `towers` runs on'),
    (['--wrapper=tower', '--workers=2'], 'Error: `towers` runs on'),
    (['--wrapper=tower', '--workers=2'],
     "Warning: the name 'tower' of a wrapper is deprecated, and tfplugin 2.0 "
     "removes it. Use 'towers'.\n"),
    (['--wrapper=towers', '--strategy=towers'], 'exclude each other'),
    (['--stepz=3'], '--stepz: no such flag. Did you mean --steps?'),
    (['more'], 'Unknown arguments: more'),
])
def test_a_mistake_is_said_in_a_line_and_starts_nothing(
    tmp_path, arguments, message):
  ended = _run(f'--model_dir={tmp_path / "run"}', *arguments)
  assert ended.returncode != 0
  assert message in ended.stderr + ended.stdout
  assert 'Traceback' not in ended.stderr
  assert not (tmp_path / 'run').exists()


def test_an_interrupted_run_names_the_directory_that_it_chose():
  program = '''
from tfplugin.bin import train
try:
  with train._model_dir_named('runs/a'):
    raise KeyboardInterrupt('stopped, the same command continues')
except KeyboardInterrupt as e:
  print(e)
'''
  ended = subprocess.run([sys.executable, '-c', program], cwd=_ROOT,
                         capture_output=True, text=True, timeout=120)
  assert ended.stdout == (
      'stopped, the same command with --model_dir=runs/a continues\n')


_PROGRAMS = {
    'train': '''
train.train_lib.train = lambda options, terminal: print(options.model_dir)
train.run_result.show = lambda result: None
train._COMMANDS.values = lambda: dict(
    model_dir=None, live=False, wrapper='none', strategy='none', model='mlp')
''',
    'train_tpu': '''
train_tpu.train_tpu_lib.train = lambda options: print(
    options.model_dir) or {'accuracy': 1.0, 'global_step': 1}
train_tpu._COMMANDS.values = lambda: dict(model_dir=None)
'''}


@pytest.mark.parametrize('name', _PROGRAMS)
def test_runs_of_one_second_have_directories_of_their_own(tmp_path, name):
  program = f'''
import time
from tfplugin.bin import {name}
time.strftime = lambda form: 'runs/a'
{_PROGRAMS[name]}
for _ in range(2):
  {name}.main(['program'])
'''
  ended = subprocess.run(
      [sys.executable, '-c', program], cwd=tmp_path, capture_output=True,
      text=True, timeout=120, env={**os.environ, 'PYTHONPATH': os.pathsep.join(
          [str(_ROOT), *filter(None, sys.path)])})
  assert [line for line in ended.stdout.splitlines() if line.startswith('runs')
          ] == ['runs/a', 'runs/a-2'], ended.stderr
