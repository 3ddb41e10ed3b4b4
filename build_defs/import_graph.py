# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which files of the repository a Python file needs, read from its source.

Nothing is imported: files are parsed. Besides import statements, a string that
names one of our modules counts (`'tfplugin.bin.train'` after `-m`, a program
in a string, a path of a file), because a process that is started needs it too.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import pathlib
import re
from collections.abc import Iterator

TOP_LEVEL = ('benchmarks', 'build_defs', 'examples', 'tests', 'tfplugin')

# Module name: name of the distribution that brings it.
_DISTRIBUTIONS = {
    'absl': 'absl-py',
    'matplotlib': 'matplotlib',
    'numpy': 'numpy',
    'plotly': 'plotly',
    'psutil': 'psutil',
    'pytest': 'pytest',
    'rich': 'rich',
    'tensorboard': 'tensorboard',
    'tensorflow': 'tensorflow',
    'tensorflow_estimator': 'tensorflow-estimator',
}
_DOTTED = re.compile(rf'\b(?:{"|".join(TOP_LEVEL)})(?:\.\w+)+')
_PATH = re.compile(r'[\w./-]+\.py\b')
_FROM = re.compile(r'\bfrom (tfplugin[\w.]*) import (\w+)')
_MAIN = re.compile(r"^if __name__ == '__main__':", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Needs:
  """What one file needs; files are paths relative to the root, with slashes.

  Attributes:
    imported: Files that it imports.
    mentioned: Files that its strings name.
    distributions: Names of the distributions of other people that it imports.
    testdata: Whether its strings name the directory of that name.
  """
  imported: frozenset
  mentioned: frozenset
  distributions: frozenset
  testdata: bool


def python_files(root: pathlib.Path) -> list:
  """Returns every Python file below the top-level directories, sorted."""
  return sorted(
      path.relative_to(root).as_posix() for top in TOP_LEVEL
      for path in (root / top).rglob('*.py'))


def is_program(root: pathlib.Path, file: str) -> bool:
  """Tells whether `file` can be run as a script."""
  return bool(_MAIN.search((root / file).read_text(encoding='utf-8')))


def needs(root: pathlib.Path, file: str) -> Needs:
  """Reads `file` and returns what it needs."""
  tree = ast.parse((root / file).read_text(encoding='utf-8'), file)
  names = list(_imported_names(tree))
  strings = list(_strings(tree))
  imported = {_file_of(root, name) for name in names} - {None, file}
  mentioned = set()
  for string in strings:
    mentioned.update(_mentioned(root, file, string))
  return Needs(
      imported=frozenset(imported),
      mentioned=frozenset(mentioned - imported - {None, file}),
      distributions=frozenset(
          _DISTRIBUTIONS[top] for top in (name.split('.')[0] for name in names)
          if top in _DISTRIBUTIONS),
      testdata=any(re.search(r'\btestdata\b', string)
                   for string in [*strings, *names]))


def _imported_names(tree: ast.AST) -> Iterator:
  """Yields dotted names; `from a import b` gives `a.b`."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
      yield from (f'{node.module}.{alias.name}' for alias in node.names)


def _strings(tree: ast.AST) -> Iterator:
  """Yields the strings of `tree` that are not docstrings."""
  docstrings = {
      id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
  for node in ast.walk(tree):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
      if id(node) not in docstrings:
        yield node.value


def _file_of(root: pathlib.Path, name: str) -> str | None:
  """Returns the file of a module, or of the module that has an attribute."""
  parts = name.split('.')
  if parts[0] not in TOP_LEVEL:
    return None
  package = '/'.join([*parts[:-1], '__init__.py'])
  if (root / package).is_file() and parts[-1] in _attributes(root, package):
    # The package gives this name to something inside the module of that name.
    return package
  for end in (len(parts), len(parts) - 1):
    path = '/'.join(parts[:end])
    for candidate in (f'{path}.py', f'{path}/__init__.py'):
      if end and (root / candidate).is_file():
        return candidate
  return None


@functools.cache
def _attributes(root: pathlib.Path, package: str) -> frozenset:
  """Returns the names that an `__init__.py` imports from its modules."""
  tree = ast.parse((root / package).read_text(encoding='utf-8'), package)
  itself = package[:-len('/__init__.py')].replace('/', '.')
  return frozenset(
      alias.name for node in ast.walk(tree)
      if isinstance(node, ast.ImportFrom) and node.module != itself
      for alias in node.names)


def _mentioned(root: pathlib.Path, file: str, string: str) -> Iterator:
  for name in _DOTTED.findall(string):
    yield _file_of(root, name)
  for module, attribute in _FROM.findall(string):
    yield _file_of(root, f'{module}.{attribute}')
  if re.search(r'\bimport tfplugin\b', string):
    yield 'tfplugin/__init__.py'
  here = pathlib.PurePosixPath(file).parent
  for path in _PATH.findall(string):
    for candidate in (path, (here / path).as_posix()):
      inside = candidate.split('/')[0] in TOP_LEVEL
      if inside and (root / candidate).is_file():
        yield candidate
