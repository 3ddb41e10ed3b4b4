# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the English of pages and public docstrings, as far as a program can.

usage: english.py [--shrink] [--list [FILE...]]

A sentence has at most 25 words, no word that has a plainer one, and no pronoun
in the place of a noun. No heading begins with "What". A module's docstring
begins with a noun, a function's with a verb, and a nested function has a name
that says more than `run`.
build_defs/english_allowances.json holds the number of breaches that each page
and each folder of the package may have. The number must not grow: mend the
sentence. --shrink lowers the allowances to the numbers of today; --list shows
the breaches.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parent.parent
ALLOWANCES = 'build_defs/english_allowances.json'
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


class Breach(NamedTuple):
  """A sentence that breaks a rule.

  Attributes:
    file: Relative to the root.
    rule: 'long', 'riddle', 'word' or 'heading'; of code 'begin' or 'nested'.
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
    elif not (is_row or stripped.startswith(('#', '>>>', '...'))
              or line.startswith('    ')):
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
  """Yields the docstrings that begin otherwise, and the vague nested names.

  Args:
    file: Its name, for the message.
    source: The module.
  """
  module = ast.parse(source)
  text = ast.get_docstring(module) or ''
  if _NO_NOUN.match(text):
    yield Breach(file, 'begin', text.splitlines()[0], 'no noun')
  for node in ast.walk(module):
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


def place(file: str) -> str:
  """Returns the page, or the folder of the package, that has an allowance.

  Modules are renamed more often than folders.

  Args:
    file: Relative to the root.
  """
  return file if file.endswith('.md') else '/'.join(
      pathlib.PurePosixPath(file).parent.parts[:2])


def counts(found: list[Breach]) -> dict[str, dict[str, int]]:
  """Returns the number of breaches of each place, by rule."""
  counted: dict = collections.defaultdict(collections.Counter)
  for breach in found:
    counted[place(breach.file)][breach.rule] += 1
  return {file: dict(sorted(rules.items())) for file, rules in counted.items()}


def _allowances(root: pathlib.Path) -> dict[str, dict[str, int]]:
  path = root / ALLOWANCES
  return json.loads(path.read_text()) if path.exists() else {}


def broken(root: pathlib.Path) -> list[str]:
  """Returns the breaches of each place that has more than its allowance.

  Args:
    root: Holds the pages.
  """
  allowed, found = _allowances(root), all_breaches(root)
  lines = []
  for file, rules in counts(found).items():
    for rule, number in rules.items():
      most = allowed.get(file, {}).get(rule, 0)
      if number > most:
        lines.append(f'{file}: {number} sentences break the rule "{rule}", at '
                     f'most {most}. Mend one of:')
        lines += [f'  {breach.file}: {breach.sentence} ({breach.found})'
                  for breach in found
                  if (place(breach.file), breach.rule) == (file, rule)]
  return lines


def shrink(root: pathlib.Path) -> None:
  """Lowers the allowances to the numbers of today; raises none.

  Args:
    root: Holds the pages and the allowances.
  """
  now, shrunk = counts(all_breaches(root)), {}
  for file, rules in _allowances(root).items():
    kept = {rule: min(most, now.get(file, {}).get(rule, 0))
            for rule, most in rules.items()}
    if any(kept.values()):
      shrunk[file] = {rule: most for rule, most in kept.items() if most}
  _write(root, shrunk)


def _write(root: pathlib.Path, allowed: dict[str, dict[str, int]]) -> None:
  lines = (f' {json.dumps(file)}: {json.dumps(rules)}'
           for file, rules in sorted(allowed.items()))
  (root / ALLOWANCES).write_text('{\n' + ',\n'.join(lines) + '\n}\n')


def main(argv: list[str]) -> int:
  """Checks, shrinks or lists; returns the exit status."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--shrink', action='store_true')
  parser.add_argument('--list', nargs='*', metavar='FILE')
  arguments = parser.parse_args(argv)
  if arguments.list is not None:
    for breach in all_breaches(_ROOT):
      if not arguments.list or breach.file in arguments.list:
        print(f'{breach.file}: {breach.rule} ({breach.found}): '
              f'{breach.sentence}')
    return 0
  if arguments.shrink:
    shrink(_ROOT)
    return 0
  lines = broken(_ROOT)
  print('\n'.join(lines) or 'The English is plain, or allowed not to be.')
  return 1 if lines else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
