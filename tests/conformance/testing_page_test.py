# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tests that pages of docs/ name exist."""
# BUILD data: //:sources

from __future__ import annotations

import pathlib
import re

import pytest

# How many tests each names at least.
_PAGES = {'testing': 100, 'evidence_cluster': 50}
_ROOT = pathlib.Path(__file__).absolute().parents[2]
_FILE = re.compile(r'`([\w/]+_test\.py)`')
_TEST = re.compile(r'`(test_\w+)`')


def _named(page: str) -> list[tuple[str, str]]:
  """Pairs of a file and a test, or an empty string, that the page names."""
  named = []
  text = (_ROOT / f'docs/{page}.md').read_text(encoding='utf-8')
  for line in text.splitlines():
    pieces = _FILE.split(line)[1:]
    for file, after in zip(pieces[::2], pieces[1::2]):
      named += [(file, test) for test in ('', *_TEST.findall(after))]
  return named


@pytest.mark.parametrize('page', _PAGES)
def test_the_page_names_tests(page):
  assert len(_named(page)) > _PAGES[page]


@pytest.mark.parametrize('page', _PAGES)
def test_every_file_and_test_exists(page):
  missing = []
  for file, test in _named(page):
    path = _ROOT / 'tests' / file
    if not path.is_file():
      missing.append(file)
    elif test and f'def {test}(' not in path.read_text(encoding='utf-8'):
      missing.append(f'{file}: {test}')
  assert not missing
