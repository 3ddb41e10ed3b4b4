# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python blocks, flags and make targets of README.md."""
# BUILD data: //:sources
# BUILD data: //testdata
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_README = _ROOT / 'README.md'
_BLOCK = re.compile(r'^```(\w+)[^\n]*\n(.*?)^```', re.M | re.S)
_SHELL = ('bash', 'console', 'sh', 'shell')
# A program is written `tfplugin-train`, `python -m tfplugin.bin.train` or
# `bazel run //tfplugin/bin:train --`.
_PROGRAM = re.compile(
    r'(?:tfplugin-|tfplugin\.bin\.|//tfplugin/bin:)([\w-]+)')
_MAX_LINES = 150


def _text() -> str:
  return _README.read_text(encoding='utf-8')


def _blocks(*languages: str) -> list:
  return [body for language, body in _BLOCK.findall(_text())
          if language in languages]


def _commands() -> list:
  """The commands of the shell blocks, continued lines joined."""
  lines = '\n'.join(_blocks(*_SHELL)).replace('\\\n', ' ').splitlines()
  stripped = [re.sub(r'^\s*\$ ', '', line).strip() for line in lines]
  return [line for line in stripped if line and not line.startswith('#')]


def _environment() -> dict:
  return {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2',
          'PYTHONPATH': os.pathsep.join([str(_ROOT), *filter(None, sys.path)])}


def _run(arguments: list, directory, **variables
         ) -> subprocess.CompletedProcess:
  return subprocess.run(
      [sys.executable, *arguments], cwd=directory,
      env={**_environment(), **variables},
      capture_output=True, text=True, timeout=200, check=False)


def _flags_of(words: list) -> list:
  """Flags of ours: those before a lone `--`, which begins a user's program."""
  if 'run' in words and '--' in words:  # bazel run TARGET -- FLAGS
    words = words[words.index('--') + 1:]
  ours = words[:words.index('--')] if '--' in words else words
  return [word[2:].split('=')[0] for word in ours if word.startswith('--')]


def _has(flag: str, help_text: str) -> bool:
  name = flag.removeprefix('no')
  return any(f'--{spelling}' in help_text or f'--[no]{spelling}' in help_text
             for spelling in (flag, name))


def test_readme_is_short_enough_to_be_read():
  assert len(_text().splitlines()) <= _MAX_LINES


def test_python_blocks_run_one_after_the_other(tmp_path):
  blocks = _blocks('python')
  assert blocks
  program = tmp_path / 'readme.py'
  program.write_text('\n'.join(blocks), encoding='utf-8')
  result = _run([str(program)], tmp_path)
  assert result.returncode == 0, result.stderr


def test_the_first_program_prints_what_the_page_says(tmp_path):
  name, level, lines = 'first.py', '1', 'seven'
  assert f'`TF_CPP_MIN_LOG_LEVEL={level} python {name}`' in _text()
  assert f'{lines} lines about the machine' in _text()
  program, = (block for block in _blocks('python') if 'model_fn(' in block)
  (tmp_path / name).write_text(program, encoding='utf-8')
  result = _run([name], tmp_path, TF_CPP_MIN_LOG_LEVEL=level)
  shown = re.search(r'^print.*# (\S+)$', program, re.M).group(1)
  assert result.stdout == shown + '\n'
  others = result.stderr.splitlines()
  assert len(others) <= (0 if tf.__version__.startswith('2.15.') else 7), others


@pytest.mark.usefixtures('forking')
def test_every_flag_exists(tmp_path):
  commands = [command for command in _commands() if _PROGRAM.search(command)]
  assert commands
  wanted = {}
  for command in commands:
    program = _PROGRAM.search(command).group(1).replace('-', '_')
    wanted.setdefault(program, set()).update(_flags_of(shlex.split(command)))
  for program, flags in wanted.items():
    module = f'tfplugin.bin.{program}'
    text = _run(['-m', module, '--helpfull'], tmp_path).stdout
    assert text, f'{program} prints no help'
    assert not [flag for flag in flags if not _has(flag, text)], program


def test_every_linked_file_exists():
  links = re.findall(r'\]\(([^)#]+)', _text())
  assert not [link for link in links
              if '://' not in link and not (_ROOT / link).exists()]


def test_every_make_target_exists():
  makefile = (_ROOT / 'Makefile').read_text(encoding='utf-8')
  targets = set(re.findall(r'^([a-z-]+):', makefile, re.M))
  words = [word for command in _commands() if command.startswith('make ')
           for word in command.split()[1:] if re.fullmatch('[a-z-]+', word)]
  assert {'train', 'test'} <= set(words)
  assert set(words) <= targets
