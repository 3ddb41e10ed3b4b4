# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/, as text: their code, links and anchors."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).absolute().parents[2]
DOCS = ROOT / 'docs'

_FENCE = re.compile(r'^(```+)([^\n]*)\n(.*?)^\1[ ]*$', re.M | re.S)
_CODE = re.compile(r'`[^`\n]+`')
_LINK = re.compile(r'\]\(\s*([^)\s]+)[^)]*\)')
_HEADING = re.compile(r'^#{1,6} (.+)$', re.M)


def pages() -> list:
  """Returns the names of all pages, relative to docs/, and README.md."""
  names = sorted(path.relative_to(DOCS).as_posix()
                 for path in DOCS.rglob('*.md'))
  return ['../README.md', *names]


def text_of(page: str) -> str:
  """Returns a page as it is written."""
  return (DOCS / page).read_text(encoding='utf-8')


def blocks(page: str, *languages: str) -> list:
  """Returns the fenced blocks of a page that are in one of the languages."""
  return [body for _, language, body in _FENCE.findall(text_of(page))
          if language.strip() in languages]


def links(page: str) -> list:
  """Returns the targets of a page's links and pictures."""
  return _LINK.findall(_CODE.sub('', _FENCE.sub('', text_of(page))))


def anchors(page: str) -> set:
  """Returns what a link may name behind `#`, as code hosts make it."""
  found: set = set()
  for heading in _HEADING.findall(_FENCE.sub('', text_of(page))):
    plain = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading)
    slug = re.sub(r'[^\w\- ]', '', plain.strip().lower()).replace(' ', '-')
    number = 0
    while (f'{slug}-{number}' if number else slug) in found:
      number += 1
    found.add(f'{slug}-{number}' if number else slug)
  return found


def contents() -> list:
  """Returns the pages that the tables of contents name, without suffix."""
  found = []
  for page in pages():
    folder = (DOCS / page).parent.relative_to(DOCS) if not page.startswith(
        '..') else pathlib.PurePath()
    for body in blocks(page, '{toctree}'):
      found += [(folder / line.strip()).as_posix()
                for line in body.splitlines()
                if line.strip() and not line.startswith(':')]
  return found
