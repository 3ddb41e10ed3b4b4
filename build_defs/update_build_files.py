# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the BUILD files below tfplugin/, tests/, examples/ and benchmarks/.

usage: update_build_files.py [--check]

One py_library for each source file, one pytest_test for each test file, a
py_binary for each program; the dependencies are what the files import. The
tests of a directory that start no processes run as one target, `all_tests`:
they share the seconds that TensorFlow takes to be imported, and those of single
files wait to be named. A test may add to that with lines of the form

  # BUILD data: //:sources
  # BUILD deps: //tfplugin:everything
  # BUILD shard_count: 3

With --check nothing is written; stale files are listed, the status is 1.
"""

from __future__ import annotations

import collections
import pathlib
import posixpath
import re
import sys

_ROOT = pathlib.Path(__file__).absolute().parent.parent
if __name__ == '__main__':
  sys.path.insert(0, str(_ROOT))

from build_defs import import_graph  # noqa: E402 (the path comes first)

_HEADER = '''\
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Written by `make build-files`.
'''
# What benchmarks wrote, which tests compare with pages.
_RESULTS = '''\
filegroup(
    name = "results",
    srcs = glob(["results/*.json"], allow_empty = True),
)
'''
_OURS = ('benchmarks', 'examples', 'tests', 'tfplugin')
_DIRECTIVE = re.compile(r'^# BUILD (data|deps|shard_count): (\S+)$', re.M)
_FILES_OF_A_SHARD = 12
_PUBLIC = ('tfplugin', 'tfplugin/bin')


class Tree:
  """The files of the repository and how their targets are called."""

  def __init__(self, root: pathlib.Path):
    self._root = root
    self.files = [file for file in import_graph.python_files(root)
                  if file.split('/')[0] in _OURS]
    self.needs = {f: import_graph.needs(root, f) for f in self.files}
    self.programs = {
        f for f in self.files
        if import_graph.is_program(root, f) and not self.is_test(f)}

  def is_test(self, file: str) -> bool:
    """Tells whether pytest collects `file`."""
    return file.startswith('tests/') and file.endswith('_test.py')

  def text(self, file: str) -> str:
    """Returns the content of `file`."""
    return (self._root / file).read_text(encoding='utf-8')

  def name(self, file: str) -> str:
    """Returns the name of the library, or test, that holds `file`."""
    directory, base = posixpath.split(file)
    if base == '__init__.py':
      return posixpath.basename(directory)
    stem = base[:-len('.py')]
    return f'{stem}_main' if file in self.programs else stem

  def label(self, file: str, package: str) -> str:
    """Returns the label of `file` as a BUILD file of `package` spells it."""
    directory, name = posixpath.dirname(file), self.name(file)
    if directory == package:
      return f':{name}'
    if posixpath.basename(directory) == name:
      return f'//{directory}'
    return f'//{directory}:{name}'

  def conftests(self, file: str) -> list:
    """Returns the conftest.py files that pytest loads for `file`."""
    above = [f'{d}/conftest.py' for d in _ancestors(posixpath.dirname(file))]
    return [conftest for conftest in above if conftest in self.needs]

  def dependencies(self, file: str) -> set:
    """Returns the files that the target of `file` depends on directly."""
    found = set(self.needs[file].imported)
    for other in self.needs[file].mentioned:
      # A program that starts itself anew must not depend on itself.
      if self.is_test(file) or not self._reaches(other, file):
        found.add(other)
    if self.is_test(file):
      found.update(self.conftests(file))
    return {f for f in found if f in self.needs and not self.is_test(f)}

  def _reaches(self, start: str, goal: str) -> bool:
    """Follows imports and mentions from `start`."""
    seen, pending = set(), [start]
    while pending:
      file = pending.pop()
      if file == goal:
        return True
      if file not in seen and file in self.needs:
        seen.add(file)
        pending += [*self.needs[file].imported, *self.needs[file].mentioned]
    return False


def _ancestors(directory: str) -> list:
  parts = directory.split('/')
  return ['/'.join(parts[:end]) for end in range(1, len(parts) + 1)]


def _rule(kind: str, **attributes) -> str:
  """Renders one target; attributes that are None or empty are left out."""
  lines = [f'{kind}(']
  for key, value in attributes.items():
    if isinstance(value, list):
      if len(value) == 1 and not value[0].startswith('#'):
        lines.append(f'    {key} = ["{value[0]}"],')
      elif value:
        lines.append(f'    {key} = [')
        lines += [f'        {v}' if v.startswith('#') else f'        "{v}",'
                  for v in value]
        lines.append('    ],')
    elif value is not None:
      shown = f'"{value}"' if isinstance(value, str) else value
      lines.append(f'    {key} = {shown},')
  return '\n'.join([*lines, ')\n'])


def _sorted_labels(labels: set) -> list:
  """Sorts own labels first, and comments last."""
  return sorted(labels, key=lambda label: (':/#'.index(label[0]), label))


def _common(tree: Tree, file: str) -> dict:
  """Returns the attributes data and deps of the target of `file`."""
  package = posixpath.dirname(file)
  deps = {tree.label(f, package) for f in tree.dependencies(file)}
  data = {'//testdata'} if tree.needs[file].testdata else set()
  for key, value in _DIRECTIVE.findall(tree.text(file)):
    {'data': data, 'deps': deps}.get(key, set()).add(value)
  pip = [f'# pip: {name}' for name in sorted(tree.needs[file].distributions)]
  return {'data': _sorted_labels(data), 'deps': _sorted_labels(deps) + pip}


def _directives(tree: Tree, file: str, wanted: str) -> list:
  return [value for key, value in _DIRECTIVE.findall(tree.text(file))
          if key == wanted]


def _is_distributed(tree: Tree, file: str) -> bool:
  return (file.startswith('tests/distributed/') or
          'mark.distributed' in tree.text(file))


def _together(tree: Tree, files: list) -> list:
  """Returns the tests among `files` that one process may run."""
  found = [file for file in files if tree.is_test(file) and
           not _is_distributed(tree, file) and
           not _directives(tree, file, 'shard_count')]
  return found if len(found) > 1 else []


def _test_target(tree: Tree, file: str, manual: bool) -> str:
  distributed = _is_distributed(tree, file)
  shards = [int(value) for value in _directives(tree, file, 'shard_count')]
  # Several processes: Bazel starts nothing beside them on two cores.
  tags = ['distributed'] if distributed else []
  return _rule(
      'pytest_test', name=tree.name(file),
      size='medium' if distributed else 'small',
      srcs=[posixpath.basename(file)],
      shard_count=shards[0] if shards else None,
      tags=[*tags, 'manual'] if manual else tags,
      **_common(tree, file))


def _all_tests(tree: Tree, files: list) -> str:
  common = [_common(tree, file) for file in files]
  return _rule(
      'pytest_test', name='all_tests', size='large', timeout='eternal',
      srcs=[posixpath.basename(file) for file in files],
      shard_count=-(-len(files) // _FILES_OF_A_SHARD),
      **{key: _sorted_labels({label for attributes in common
                              for label in attributes[key]})
         for key in ('data', 'deps')})


def _testonly(file: str) -> bool | None:
  # Benchmarks are not shipped either, and may use the helpers of tests.
  helpers = ('benchmarks/', 'tests/', 'tfplugin/testing/')
  return True if file.startswith(helpers) else None


def _targets(tree: Tree, file: str, manual: bool) -> list:
  if tree.is_test(file):
    return [_test_target(tree, file, manual)]
  base, package = posixpath.basename(file), posixpath.dirname(file)
  testonly = _testonly(file)
  targets = [_rule('py_library', name=tree.name(file), testonly=testonly,
                   srcs=[base], **_common(tree, file))]
  if file in tree.programs:
    targets.append(_rule(
        'py_binary', name=base[:-len('.py')], testonly=testonly, srcs=[base],
        deps=[tree.label(file, package)]))
  return targets


def _everything(tree: Tree) -> str:
  """One library of all that the wheel holds."""
  return _rule('py_library', name='everything', testonly=True,
               data=['py.typed'],
               deps=_sorted_labels({
                   tree.label(f, 'tfplugin') for f in tree.files
                   if f.startswith('tfplugin/')}))


def _visibility(package: str) -> str:
  if package in _PUBLIC:
    return '["//visibility:public"]'
  readers = [f'//{top}:__subpackages__' for top in _OURS]
  return '[\n    ' + '\n    '.join(f'"{r}",' for r in readers) + '\n]'


def _build_file(tree: Tree, package: str, files: list) -> str:
  load = ('load("//build_defs:pytest.bzl", "pytest_test")\n'
          if any(map(tree.is_test, files)) else None)
  parts = [_HEADER, load,
           f'package(default_visibility = {_visibility(package)})\n']
  together = _together(tree, files)
  for file in files:
    parts += _targets(tree, file, manual=file in together)
  if together:
    parts.append(_all_tests(tree, together))
  if package == 'tfplugin':
    parts.append(_everything(tree))
  if package == 'benchmarks':
    parts.append(_RESULTS)
  sources = ['BUILD', *map(posixpath.basename, files)]
  if package == 'tfplugin':
    sources.append('py.typed')
  parts.append(_rule('filegroup', name='sources', srcs=sorted(sources),
                     visibility=['//visibility:public']))
  return '\n'.join(part for part in parts if part)


def contents(root: pathlib.Path) -> dict:
  """Returns the content that every generated file should have, by path."""
  tree = Tree(root)
  packages = collections.defaultdict(list)
  for file in tree.files:
    packages[posixpath.dirname(file)].append(file)
  result = {f'{package}/BUILD': _build_file(tree, package, files)
            for package, files in packages.items()}
  version = re.search(r"__version__ = '(.*)'", tree.text(
      'tfplugin/version.py')).group(1)
  lists = ''.join(
      f'\n{name} = [\n' + ''.join(
          f'    "//{package}:sources",\n' for package in sorted(packages)
          if package.split('/')[0] == 'tfplugin' or name == 'SOURCES') + ']\n'
      for name in ('PACKAGE_SOURCES', 'SOURCES'))
  result['build_defs/generated.bzl'] = (
      f'{_HEADER}"""What the BUILD file at the top reads."""\n\n'
      f'VERSION = "{version}"\n{lists}')
  return result


def stale(root: pathlib.Path) -> list:
  """Returns the generated files that differ from what they should hold."""
  return [path for path, text in contents(root).items()
          if not (root / path).is_file()
          or (root / path).read_text(encoding='utf-8') != text]


def main(argv: list) -> int:
  """Writes, or with --check compares, the files; returns the exit status."""
  if argv not in ([], ['--check']):
    print(__doc__, file=sys.stderr)
    return 2
  paths = stale(_ROOT)
  if argv:
    print('\n'.join(paths) or 'The BUILD files are up to date.')
    return 1 if paths else 0
  wanted = contents(_ROOT)
  for path in paths:
    (_ROOT / path).write_text(wanted[path], encoding='utf-8')
    print('wrote', path)
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
