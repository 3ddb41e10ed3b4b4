# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules that `make lint` adds to ruff's, on broken trees."""
# BUILD data: //:sources

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from build_defs import house_rules

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_LINT_IMPORTS = ('import importlinter.cli, sys; '
                 'sys.exit(importlinter.cli.lint_imports(no_cache=True))')


def _write(root, file, text=''):
  path = root / file
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)


@pytest.fixture(name='no_exceptions')
def fixture_no_exceptions(monkeypatch):
  monkeypatch.setattr(house_rules, 'MORE_FILES', {})
  monkeypatch.setattr(house_rules, 'MORE_LINES', {})


def test_repository_keeps_the_rules():
  assert not house_rules.broken_rules(_ROOT)


@pytest.mark.parametrize('folder, most', (
    ('tfplugin/distribute', 15), ('tfplugin/distribute/ring', 15),
    ('tests/ring', 20)))
def test_folder_with_too_many_files(tmp_path, no_exceptions, folder, most):
  for number in range(most):
    _write(tmp_path, f'{folder}/bell{number}.py')
  assert not house_rules.file_counts(tmp_path)
  _write(tmp_path, f'{folder}/gong.py')
  assert house_rules.file_counts(tmp_path) == [
      f'{folder}: {most + 1} files, at most {most}']


def test_file_with_too_many_lines(tmp_path, no_exceptions):
  _write(tmp_path, 'tfplugin/bell.py', '\n' * 350)
  assert not house_rules.file_lengths(tmp_path)
  _write(tmp_path, 'tfplugin/bell.py', '\n' * 351)
  assert house_rules.file_lengths(tmp_path) == [
      'tfplugin/bell.py: 351 lines, at most 350']


@pytest.mark.parametrize('mark', ['<<<<<<< HEAD', '>>>>>>> other'])
def test_page_with_an_unfinished_merge(tmp_path, mark):
  _write(tmp_path, 'docs/bells/bell.md', 'It rings.\n\n    <<<<<<< quoted\n')
  assert not house_rules.unmerged_pages(tmp_path)
  _write(tmp_path, 'docs/bells/bell.md', f'It rings.\n{mark}\n')
  assert house_rules.unmerged_pages(tmp_path) == [
      'docs/bells/bell.md: finish the merge']


def test_exception_must_not_grow_or_be_needless(tmp_path, monkeypatch):
  monkeypatch.setattr(house_rules, 'MORE_LINES', {'tfplugin/bell.py': 400})
  for lines, broken in ((400, []),
                        (401, ['tfplugin/bell.py: 401 lines, at most 400']),
                        (350, ['tfplugin/bell.py: needs no exception for its '
                               'lines any more'])):
    _write(tmp_path, 'tfplugin/bell.py', '\n' * lines)
    assert house_rules.file_lengths(tmp_path) == broken


def test_string_that_names_private_tensorflow(tmp_path, monkeypatch,
                                              no_exceptions):
  class Names:
    private_strings = staticmethod(lambda root: [f'{root.name}: a string'])

  monkeypatch.setattr(house_rules, 'private_names', Names)
  assert house_rules.broken_rules(tmp_path) == [f'{tmp_path.name}: a string']


def test_each_environment_is_kept_out_of_bazels_way(tmp_path):
  (tmp_path / 'requirements').mkdir()
  _write(tmp_path, 'requirements/tensorflow-2.18.txt', '')
  others = '.git\n.venv\n.venv-docs\n.venv-horovod\n'
  _write(tmp_path, '.bazelignore', others)
  assert house_rules.environments_in_bazels_way(tmp_path) == [
      '.bazelignore: .venv-2.18 is missing']
  _write(tmp_path, '.bazelignore', f'{others}.venv-2.18\n')
  assert not house_rules.environments_in_bazels_way(tmp_path)


def _lint_imports(root):
  """Returns the exit status and the output, without its colours."""
  done = subprocess.run([sys.executable, '-c', _LINT_IMPORTS], cwd=root,
                        capture_output=True, text=True, check=False)
  return done.returncode, re.sub(r'\x1b\[\d+m', '', done.stdout + done.stderr)


def test_repository_keeps_the_contracts_of_imports():
  status, output = _lint_imports(_ROOT)
  assert status == 0, output


_ORDER = 'Imports go one way'
_NO_TOOL = 'Nothing of the core imports a tool'


@pytest.mark.parametrize('file, line, broken', (
    ('ops/clip_rules.py', 'from tfplugin.distribute import placement',
     [_ORDER]),
    ('types.py', 'from tfplugin.ops import branching', [_ORDER]),
    ('hooks/contact_hooks.py', 'import tfplugin', [_ORDER]),
    ('estimator/model_fn.py', 'from tfplugin.bin.processes import restarts',
     [_ORDER, _NO_TOOL]),
    ('hooks/events_hook.py', 'from tfplugin.report import writing',
     [_ORDER, _NO_TOOL]),
    ('faults/acts.py', 'from tfplugin.bin.processes import ports', [_ORDER]),
    ('bell.py', '', [_ORDER]),
    ('distribute/clipping/clip_rules.py',
     'from tfplugin.distribute.staleness import update_lock',
     ['A wrapper does not need another one']),
    ('__init__.py', 'from tfplugin.testing import devices',
     ['The helpers of tests are for tests']),
    ('contrib/tpu.py', 'from build_defs import import_graph',
     ['What is not shipped is not imported']),
))
def test_import_against_a_contract(tmp_path, file, line, broken):
  shutil.copytree(_ROOT / 'tfplugin', tmp_path / 'tfplugin',
                  ignore=shutil.ignore_patterns('__pycache__'))
  shutil.copy(_ROOT / 'pyproject.toml', tmp_path)
  with (tmp_path / 'tfplugin' / file).open('a') as source:
    source.write(f'\n{line}\n')
  status, output = _lint_imports(tmp_path)
  assert status == 1
  assert re.findall(r'^(.*) BROKEN$', output, re.M) == broken, output
