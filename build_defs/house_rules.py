# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the house that ruff and import-linter cannot know.

usage: house_rules.py

A folder holds few files, a file few lines, names of private TensorFlow stand in
one place, Bazel looks into no virtual environment, and sentences are plain
(english.py). Lists the breaches of a rule; the status is then 1.
"""

from __future__ import annotations

import collections
import pathlib
import posixpath
import re
import sys
from collections.abc import Mapping

_ROOT = pathlib.Path(__file__).absolute().parent.parent
if __name__ == '__main__':
  sys.path.insert(0, str(_ROOT))

from build_defs import english  # noqa: E402 (the path comes first)
from build_defs import import_graph  # noqa: E402 (likewise)
from build_defs import private_names  # noqa: E402 (likewise)

MAX_FILES = 15
# Tests of the whole stand beside those of the files.
MAX_TEST_FILES = 20
# Folders with more files than that, and how many. Must not grow.
MORE_FILES = {
    'build_defs': 16,
    'tests/estimator': 29,
    'tfplugin/bin': 20,
}

MAX_LINES = 350
# Files with more lines than that, and how many. Must not grow.
MORE_LINES: dict[str, int] = {}
_MERGE = re.compile(r'^(?:<{7}|>{7}) ', re.M)


def file_counts(root: pathlib.Path) -> list[str]:
  """Returns the folders below `root` with too many Python files."""
  counts = collections.Counter(
      map(posixpath.dirname, import_graph.python_files(root)))
  limits = {folder: MAX_TEST_FILES if folder.startswith('tests/') else MAX_FILES
            for folder in counts}
  return _above(counts, limits, MORE_FILES, 'files')


def file_lengths(root: pathlib.Path) -> list[str]:
  """Returns the Python files below `root` with too many lines."""
  lengths = {file: (root / file).read_text(encoding='utf-8').count('\n')
             for file in import_graph.python_files(root)}
  limits = dict.fromkeys(lengths, MAX_LINES)
  return _above(lengths, limits, MORE_LINES, 'lines')


def unmerged_pages(root: pathlib.Path) -> list[str]:
  """Returns the pages below `root` with the marks of an unfinished merge."""
  pages = sorted([*root.glob('*.md'), *root.glob('docs/**/*.md')])
  return [f'{page.relative_to(root)}: finish the merge'
          for page in pages if _MERGE.search(page.read_text(encoding='utf-8'))]


def environments_in_bazels_way(root: pathlib.Path) -> list[str]:
  """Returns virtual environments below `root` in which Bazel would look.

  Their packages bring BUILD files along, which it cannot read.
  """
  path = root / '.bazelignore'
  if not path.exists():  # Bazel itself does not hand it on.
    return []
  ignored = path.read_text(encoding='utf-8').split()
  releases = (path.stem.rpartition('-')[2]
              for path in root.glob('requirements/tensorflow-*.txt'))
  return [f'.bazelignore: {name} is missing'
          for name in sorted(['.venv', '.venv-docs', '.venv-horovod', *(
              f'.venv-{release}' for release in releases)])
          if name not in ignored]


def _above(sizes: Mapping[str, int], limits: Mapping[str, int],
           exceptions: Mapping[str, int], unit: str) -> list[str]:
  """Returns the paths above their limits, and needless exceptions."""
  needless = [path for path in exceptions
              if path not in sizes or sizes[path] <= limits[path]]
  limits = {**limits, **exceptions}
  return [f'{path}: {size} {unit}, at most {limits[path]}'
          for path, size in sizes.items() if size > limits[path]] + [
              f'{path}: needs no exception for its {unit} any more'
              for path in needless]


def broken_rules(root: pathlib.Path) -> list[str]:
  """Returns what breaks a rule below `root`, a line for each."""
  return [*file_counts(root), *file_lengths(root), *unmerged_pages(root),
          *environments_in_bazels_way(root),
          *private_names.private_strings(root), *english.broken(root)]


if __name__ == '__main__':
  lines = broken_rules(_ROOT)
  print('\n'.join(lines) or 'The rules of the house are kept.')
  sys.exit(1 if lines else 0)
