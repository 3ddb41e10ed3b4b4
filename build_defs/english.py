# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the English of pages and public docstrings, as far as a program can.

usage: english.py [FILE...]

A sentence has at most 25 words, no word that has a plainer one, and no pronoun
in the place of a noun. No heading begins with "What". A module's docstring
begins with a noun, a function's with a verb, a nested function has a name
that says more than `run`, and no name has a word of `_PRIVATE`.
Lists the breaches, of all files or of some; the status is then 1.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parent.parent
MAX_WORDS = 25
# What a page says, and what stands there by itself.
_PAGES = ('*.md', 'docs/**/*.md', 'examples/**/*.md')
# A word, and the word of the house.
_PLAINER = {
    'communications?': 'exchange',
    'comes? back|came back': 'restart',
    'fates?': 'outcome',
    'honou?rs?|honou?red': 'uses, keeps',
    'nobody': 'no worker, no task',
    'passed by': 'ignored',
    'settles?|settled': 'aggregate',
    'tells? of|told of': 'report',
    'unseen': 'unaudited',
}
# Pronouns in the place of a noun.
_RIDDLES = re.compile(
    r'\bwhat(?:ever)?\b|\bwhoever\b|\bthose (?:of|that)\b|\bthat of\b', re.I)
_WORDS = re.compile('|'.join(rf'\b(?:{word})\b' for word in _PLAINER), re.I)

_FENCE = re.compile(r'^ *(```+|:::+)[^\n]*\n.*?^ *\1[ ]*$', re.M | re.S)
_COMMENT = re.compile(r'<!--.*?-->', re.S)
_CODE = re.compile(r'``[^`]+``|`[^`]+`|\$\$.*?\$\$|\$[^$\n]+\$', re.S)
_LINK = re.compile(r'!?\[([^]]*)\]\([^)]*\)')
_HEAD = re.compile(r'^ *\|[^\n]*\n(?= *\|[-:| ]+\n)', re.M)
_END = re.compile(r'(?<=[.?!:;])["\')*]*\s+(?=\S)')
_HEADING = re.compile(r'^#+ (What\b.*[^?\n])$', re.M)
_WORD = re.compile(r"[A-Za-z0-9][\w'.,%/-]*")
# Where a docstring's prose ends: sections have their own form.
_SECTION = re.compile(r'^ *(Args|Attributes|Raises|Returns|Yields|Example|'
                      r'Examples|References|Usage):\s*$', re.M)


# How a function's docstring begins; a property's with the noun of its value.
_VERB = re.compile(r'[A-Z][a-z-]+s[,;:]? |See base class')
_NO_VERB = re.compile(r'(?:Lets|Which|Whether|How|What) ')
_NO_NOUN = re.compile(r'(?:What|How|Which|Where|When|Whether|That|Is|Are|On|To|'
                      r'No)(?![\w-])')
_VAGUE = {'apply', 'call', 'move', 'run', 'show', 'take'}
# Words in the names of classes, functions and variables. The plainer ones:
# intercept, wrap, audit, report, record, set.
_PRIVATE = {'being', 'fate', 'honoured', 'meet', 'meeting', 'met', 'passing',
            'told', 'unseen', 'untold'}


class Breach(NamedTuple):
  """A sentence that breaks a rule.

  Attributes:
    file: Relative to the root.
    rule: 'long', 'riddle', 'word' or 'heading'; of code 'begin', 'nested' or
      'name'.
    sentence: The sentence, as it was read.
    found: The number of words, or the words.
  """

  file: str
  rule: str
  sentence: str
  found: str


def sentences(text: str) -> Iterator[str]:
  """Yields the sentences of a Markdown text, without headings and code.

  Args:
    text: A page, or the prose of a docstring.
  """
  text = _HEAD.sub('', _COMMENT.sub('', _FENCE.sub('', text)))
  # The title of a page may ask, too.
  text = _LINK.sub(lambda link: re.sub('(?i)what', 'how', link[1]),
                   _CODE.sub('CODE', text))
  block: list[str] = []
  for line in [*text.splitlines(), '']:
    stripped = line.strip()
    is_row, is_item = stripped.startswith('|'), re.match(
        r'([-*]|\d+\.) ', stripped)
    if not stripped or is_row or is_item or stripped.startswith('#'):
      yield from _split(' '.join(block))
      block = []
    if is_row and not re.fullmatch(r'[|: -]+', stripped):
      for cell in stripped.strip('|').split(' | '):
        yield from _split(cell)
    elif is_item:
      block = [stripped[is_item.end():]]
    elif stripped and not (is_row or stripped.startswith(('#', '>>>', '...'))
                       or line.startswith('  ' if not block else '    ')):
      block.append(stripped)


def _split(paragraph: str) -> Iterator[str]:
  for sentence in _END.split(paragraph):
    if sentence.strip():
      yield sentence.strip()


def breaches(file: str, text: str) -> Iterator[Breach]:
  """Yields the breaches of a text.

  Args:
    file: Its name, for the message.
    text: See `sentences`.
  """
  for heading in _HEADING.findall(_FENCE.sub('', text)):
    yield Breach(file, 'heading', heading, 'What')
  for sentence in sentences(text):
    number = len(_WORD.findall(sentence))
    if number > MAX_WORDS:
      yield Breach(file, 'long', sentence, f'{number} words')
    if sentence.endswith('?'):  # A question asks what.
      continue
    for rule, pattern in (('riddle', _RIDDLES), ('word', _WORDS)):
      found = pattern.findall(sentence)
      if found:
        yield Breach(file, rule, sentence, ', '.join(found))


def docstrings(source: str) -> str:
  """Returns the prose of the docstrings of a module's public names.

  Args:
    source: The module.
  """
  def public(node) -> Iterator[ast.AST]:
    yield node
    for child in getattr(node, 'body', ()):
      if isinstance(child, (ast.ClassDef, ast.FunctionDef)) and (
          not child.name.startswith('_')):
        yield from public(child) if isinstance(
            child, ast.ClassDef) else (child,)
  texts = (ast.get_docstring(node) for node in public(ast.parse(source)))
  return '\n\n'.join(_SECTION.split(text)[0] for text in texts if text)


def code_breaches(file: str, source: str) -> Iterator[Breach]:
  """Yields the docstrings that begin otherwise, and the unclear names.

  Args:
    file: Its name, for the message.
    source: The module.
  """
  module = ast.parse(source)
  text = ast.get_docstring(module) or ''
  if _NO_NOUN.match(text):
    yield Breach(file, 'begin', text.splitlines()[0], 'no noun')
  for node in ast.walk(module):
    name = _name_of(node)
    private = _PRIVATE.intersection(re.findall('[A-Z]?[a-z]+', name.lower()))
    if private:
      yield Breach(file, 'name', name, ', '.join(private))
    if not isinstance(node, ast.FunctionDef):
      continue
    text = (ast.get_docstring(node) or '').split('\n')[0]
    if text and (_NO_VERB.match(text) or not node.decorator_list and
                 not _VERB.match(f'{text} ')):
      yield Breach(file, 'begin', f'{node.name}: {text}', 'no verb')
    for child in ast.walk(node):
      if (isinstance(child, ast.FunctionDef) and child is not node
          and child.name in _VAGUE):
        yield Breach(file, 'nested', f'{node.name}.{child.name}', child.name)


def _name_of(node: ast.AST) -> str:
  """Returns the name that a node of code gives to something, or ''."""
  if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
    return node.name
  if isinstance(node, ast.arg):
    return node.arg
  if isinstance(getattr(node, 'ctx', None), ast.Store):
    return getattr(node, 'id', '') or getattr(node, 'attr', '')
  return ''


def all_breaches(root: pathlib.Path) -> list[Breach]:
  """Returns the breaches of all pages and public docstrings below `root`."""
  found: list[Breach] = []
  for path in sorted({path for pattern in _PAGES
                      for path in root.glob(pattern)}):
    found += breaches(path.relative_to(root).as_posix(),
                      path.read_text(encoding='utf-8'))
  for path in sorted(root.glob('tfplugin/**/*.py')):
    file = path.relative_to(root).as_posix()
    source = path.read_text(encoding='utf-8')
    found += code_breaches(file, source)
    if not re.search(r'/_(?!_)', file):
      found += breaches(file, docstrings(source))
  return found


def broken(root: pathlib.Path) -> list[str]:
  """Returns the breaches below `root`, a line for each."""
  return [f'{breach.file}: {breach.sentence} ({breach.rule}: {breach.found})'
          for breach in all_breaches(root)]


def main(files: list[str]) -> int:
  """Lists the breaches; returns the exit status."""
  lines = [line for line in broken(_ROOT)
           if not files or line.split(':')[0] in files]
  print('\n'.join(lines))
  return int(bool(lines))


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
