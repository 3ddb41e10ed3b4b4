# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, looks into it, and uses it from another directory."""
# BUILD data: //:wheel
# BUILD data: //:wheel_sources
# BUILD data: //build_defs:sources

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_TOP = ('LICENSE', 'README.md', 'pyproject.toml', 'setup.py')


def _run(*command, cwd, status=0, **environ) -> str:
  """Runs a command outside the checkout; returns its standard output."""
  kept = {key: os.environ[key] for key in ('HOME', 'PATH') if key in os.environ}
  result = subprocess.run(
      [str(word) for word in command], cwd=cwd, capture_output=True, text=True,
      timeout=200, env={**kept, 'TF_CPP_MIN_LOG_LEVEL': '2', **environ},
      check=False)
  assert result.returncode == status, result.stdout + result.stderr
  return result.stdout


def _sources() -> list:
  """The files that the wheel is made of, relative to the root."""
  package = [path for path in (_ROOT / 'tfplugin').rglob('*')
             if path.suffix == '.py' or path.name == 'py.typed']
  data = [path for pattern in ('*.gz', '*.md', '*.txt')
          for path in (_ROOT / 'testdata').glob(pattern)]
  return [*_TOP, *(path.relative_to(_ROOT).as_posix()
                   for path in [*package, *data])]


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
  """A copy of the sources, so that nothing is written into the checkout."""
  directory = tmp_path_factory.mktemp('tree')
  for source in _sources():
    (directory / source).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_ROOT / source, directory / source)
  return directory


@pytest.fixture(scope='module')
def wheel(tree, tmp_path_factory):
  """The wheel as pip makes it."""
  directory = tmp_path_factory.mktemp('pip')
  _run(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps',
       '--no-index', '--no-build-isolation', '--wheel-dir', directory, tree,
       cwd=directory)
  wheels = list(directory.iterdir())
  assert len(wheels) == 1
  return wheels[0]


@pytest.fixture(scope='module')
def installed(wheel, tmp_path_factory):
  """A directory that the wheel is installed into."""
  directory = tmp_path_factory.mktemp('installed')
  _run(sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps',
       '--no-index', '--no-compile', '--target', directory, wheel,
       cwd=directory)
  return directory


def test_pip_and_bazel_make_the_same_wheel(wheel, tree, tmp_path):
  bazel = tmp_path / wheel.name
  _run(sys.executable, _ROOT / 'build_defs/build_wheel.py', bazel, *_sources(),
       cwd=tree)
  assert bazel.read_bytes() == wheel.read_bytes()
  built = _ROOT / wheel.name  # Under Bazel: what the target //:wheel made.
  if 'TEST_SRCDIR' in os.environ:
    assert built.read_bytes() == wheel.read_bytes()


def test_wheel_holds_the_package_and_nothing_else(wheel):
  with zipfile.ZipFile(wheel) as archive:
    names = set(archive.namelist())
  assert {'tfplugin/__init__.py', 'tfplugin/py.typed',
          'tfplugin/testdata/digits.csv.gz'} <= names
  tops = {name.split('/')[0] for name in names}
  assert tops == {'tfplugin', wheel.name.split('-py3')[0] + '.dist-info'}
  assert not [name for name in names
              if name.endswith('_test.py') or 'goldens' in name
              or name.endswith('BUILD')]
  sources = {source for source in _sources() if source.endswith('.py')
             and source != 'setup.py'}
  assert {name for name in names if name.endswith('.py')} == sources


def test_installed_package_is_used_from_another_directory(installed, tmp_path):
  where = _run(
      sys.executable, '-c', 'import tfplugin; print(tfplugin.__file__)',
      cwd=tmp_path, PYTHONPATH=str(installed))
  assert pathlib.Path(where.strip()).parent == installed / 'tfplugin'


@pytest.mark.sampled(4)
@pytest.mark.parametrize('script', [
    'tfplugin-launch', 'tfplugin-plan', 'tfplugin-report', 'tfplugin-train',
    'tfplugin-train-tpu', 'tfplugin-watch'])
def test_every_console_script_shows_its_help(installed, tmp_path, script):
  assert script in [path.name for path in (installed / 'bin').iterdir()]
  shown = _run(sys.executable, installed / 'bin' / script, '--helpfull',
               cwd=tmp_path, PYTHONPATH=str(installed))
  program = script.split('-', 1)[1].replace('-', '_')
  source = (installed / f'tfplugin/bin/{program}.py').read_text()
  flags = re.findall(r"(?:flags\.DEFINE_\w+|_int|_float|_bool)\(\s*'(\w+)'",
                     source)
  assert len(flags) >= (2 if program in ('report', 'watch') else 7)
  assert not [flag for flag in flags
              if not re.search(rf'^ +--(\[no\])?{flag}\b', shown, re.M)]
  assert shown.startswith(f'{script}: '), 'the docstring of the program'
