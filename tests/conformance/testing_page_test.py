# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tests, files and functions that pages of docs/ name exist."""
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
# A page with places in the package, and the heading of the table of functions.
_ARCHITECTURE = (_ROOT / 'docs/architecture.md').read_text(encoding='utf-8')
_PLACES = '## Where to change it'
_SOURCE = re.compile(r'`([\w/]+\.py)`')
_NAME = re.compile(r'`(?:\w+\.)?(\w+)`')


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


def _sources(path: str) -> list[pathlib.Path]:
  """Files of the package whose paths end so."""
  return list((_ROOT / 'tfplugin').glob(f'**/{path.removeprefix("tfplugin/")}'))


def test_every_file_of_the_architecture_exists():
  named = _SOURCE.findall(_ARCHITECTURE)
  assert len(named) > 100
  assert not [path for path in named if not _sources(path)]


def test_every_place_to_change_exists():
  table = _ARCHITECTURE.partition(_PLACES)[2].partition('\n## ')[0]
  missing, number = [], 0
  for row in table.splitlines():
    pieces = _SOURCE.split(row)[1:]
    for path, after in zip(pieces[::2], pieces[1::2]):
      text, = [p.read_text(encoding='utf-8') for p in _sources(path)]
      for name in _NAME.findall(after):
        number += 1
        if not re.search(rf'^ *((def|class) {name}\b|{name}(: .*)? = )', text,
                         re.M):
          missing.append(f'{path}: {name}')
  assert not missing
  assert number > 30
