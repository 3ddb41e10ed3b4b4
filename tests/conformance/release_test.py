# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a release consists of besides the package, and that it agrees."""
# BUILD data: //:sources
# BUILD data: //:wheel_sources

from __future__ import annotations

import email
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from build_defs import import_graph
from tfplugin import version

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_TEXTS = ('README.md', 'SECURITY.md', 'CITATION.cff', 'pyproject.toml',
          'docs/stability.md', '.github/ISSUE_TEMPLATE/config.yml')


def _text(file: str) -> str:
  return (_ROOT / file).read_text(encoding='utf-8')


def _run(*arguments, cwd) -> None:
  """Runs Python in an environment without what tests and Bazel set."""
  kept = {key: os.environ[key] for key in ('HOME', 'PATH') if key in os.environ}
  done = subprocess.run(
      [sys.executable, *map(str, arguments)], cwd=cwd, env=kept, timeout=200,
      capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stdout + done.stderr


def _wheel(source: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
  _run('-m', 'pip', 'wheel', '--quiet', '--no-cache-dir', '--no-deps',
       '--no-index', '--no-build-isolation', '--wheel-dir', directory, source,
       cwd=directory)
  wheel, = directory.glob('*.whl')
  return wheel


def _sources() -> list:
  """What the source archive is made of, relative to the root."""
  data = ((_ROOT / 'testdata').glob(pattern)
          for pattern in ('*.gz', '*.md', '*.txt'))
  return ['MANIFEST.in', 'setup.py', 'pyproject.toml', 'LICENSE', 'README.md',
          'CHANGELOG.md', 'SECURITY.md', 'CITATION.cff', 'tfplugin/py.typed',
          *(path.relative_to(_ROOT).as_posix()
            for paths in data for path in paths),
          *(file for file in import_graph.python_files(_ROOT)
            if file.startswith('tfplugin/'))]


@pytest.fixture(name='tree', scope='module')
def fixture_tree(tmp_path_factory):
  """A copy of the sources."""
  tree = tmp_path_factory.mktemp('tree')
  for file in _sources():
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_ROOT / file, tree / file)
  return tree


@pytest.fixture(name='archive', scope='module')
def fixture_archive(tree, tmp_path_factory):
  """The source archive as `pip`, `build` and others make it, by the backend."""
  directory = tmp_path_factory.mktemp('sdist')
  _run('-c', 'import sys; from setuptools import build_meta; '
       'build_meta.build_sdist(sys.argv[1])', directory, cwd=tree)
  archive, = directory.iterdir()
  return archive


@pytest.fixture(name='wheel', scope='module')
def fixture_wheel(archive, tmp_path_factory):
  """The wheel that pip makes of the source archive."""
  return _wheel(archive, tmp_path_factory.mktemp('from_sdist'))


def test_source_archive_of_make_is_that_of_the_backend(tree, archive, tmp_path):
  (tree / 'setup.py').touch()  # At another time.
  (tree / 'setup.py').chmod(0o600)
  _run('setup.py', '-q', 'sdist', '-d', tmp_path, cwd=tree)
  again, = tmp_path.iterdir()
  assert again.name == f'tfplugin-{version.__version__}.tar.gz'
  assert again.read_bytes() == archive.read_bytes()


def test_source_archive_of_bazel_is_that_of_the_backend(
    tree, archive, tmp_path):
  bazel = tmp_path / archive.name
  _run(_ROOT / 'build_defs/build_wheel.py', bazel, *_sources(), cwd=tree)
  assert bazel.read_bytes() == archive.read_bytes()


def test_source_archive_holds_the_sources_and_nothing_else(archive):
  with tarfile.open(archive) as files:
    names = [member.name.partition('/')[2] for member in files.getmembers()
             if member.isfile()]
  assert sorted(names) == sorted([*_sources(), 'PKG-INFO', 'setup.cfg'])


def test_source_archive_gives_the_wheel_of_the_checkout(tree, wheel, tmp_path):
  assert wheel.read_bytes() == _wheel(tree, tmp_path).read_bytes()


def _metadata(wheel):
  with zipfile.ZipFile(wheel) as files:
    name, = (each for each in files.namelist() if each.endswith('/METADATA'))
    return email.message_from_bytes(files.read(name))


def test_metadata_of_the_wheel(wheel):
  metadata = _metadata(wheel)
  assert metadata['Name'] == 'tfplugin'
  assert metadata['Version'] == version.__version__
  assert metadata['License'] == 'Apache-2.0'
  urls = dict(url.split(', ') for url in metadata.get_all('Project-URL'))
  assert {'Documentation', 'Source', 'Issues', 'Changelog'} <= set(urls)
  assert 'parameter server' in metadata['Keywords'].split(',')
  classifiers = metadata.get_all('Classifier')
  assert 'Typing :: Typed' in classifiers
  assert 'Operating System :: POSIX :: Linux' in classifiers
  minors = {each.rpartition('.')[2] for each in classifiers
            if '3.' in each.rpartition(' :: ')[2]}
  assert minors == {'9', '10', '11', '12', '13'}
  low, high = sorted(map(int, re.findall(r'3\.(\d+)',
                                         metadata['Requires-Python'])))
  assert minors == set(map(str, range(low, high)))


def test_links_work_on_a_package_index(wheel):
  links = re.findall(r'\]\(([^)]+)\)', _metadata(wheel).get_payload())
  assert len(links) > 10
  assert not [link for link in links if not link.startswith('https://')]
  pictures = [link for link in links if link.endswith(('.svg', '.png'))]
  assert pictures and all('/raw/' in link for link in pictures)


def test_one_address_of_the_repository():
  source = re.search(r'^Source = "(.*)"$', _text('pyproject.toml'), re.M)[1]
  for file in _TEXTS:
    found = re.findall(r'https://github\.com/[\w.-]+/[\w.-]+', _text(file))
    assert found and set(found) == {source}, file


def test_version_is_the_same_everywhere():
  assert re.search(r'^version: (.*)$', _text('CITATION.cff'),
                   re.M)[1] == version.__version__
  versions = re.findall(r'^## \[?([\d.]+)\]?', _text('CHANGELOG.md'), re.M)
  assert versions[0] == version.__version__


def test_workflow_calls_the_script_of_the_house():
  assert 'run: bash .ci/run\n' in _text('.github/workflows/ci.yml')
  assert (_ROOT / '.ci/run').exists()


def test_bug_form_asks_for_what_the_pages_say():
  form = _text('.github/ISSUE_TEMPLATE/bug.yml')
  for asked in ('python -m tfplugin', 'TF_CONFIG', 'summary.json'):
    assert asked in form and asked in _text('docs/stability.md')


def test_deprecation_policy_is_said():
  policy = _text('docs/stability.md').split('## Deprecation')[1]
  assert 'DeprecationWarning' in policy and 'six months' in policy
