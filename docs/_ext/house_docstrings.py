# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns the docstrings of this house into what Sphinx reads.

They are written to be read in the source: sections as in the Google style,
equations and programs by indentation alone, code in single backticks.
"""

from __future__ import annotations

import re
import textwrap

_SECTION = re.compile(r'([A-Z](?:[^`.]|\.(?=\w)){0,70}):$')
_ITEM = re.compile(r'(\*|\d+\.) ')
_ENTRY = re.compile(r'([\w*<][^:`]{0,78}|`[^`]+`[^:]*):(?: |$)(.*)')
_OF_ENTRIES = ('Args', 'Attributes', 'Raises', 'Variables created', 'Scalars')
_OF_TEXT = ('Returns', 'Yields', 'References', 'Supported', 'Differences')


def to_rst(text: str) -> list[str]:
  """Returns the lines of a docstring as reStructuredText."""
  lines = _with_whole_code(text.expandtabs().rstrip().splitlines())
  result, index = [], 0
  while index < len(lines):
    section = _SECTION.match(lines[index])
    body, end = _indented(lines, index + 1)
    stands_alone = not index or not lines[index - 1]
    if section and body and stands_alone:
      result += ['', f'**{_inline(section[1])}**', '',
                 *_section(section[1], body), '']
      index = end
    elif lines[index].startswith(' '):
      body, index = _indented(lines, index)
      result += _block(body)
    elif _ITEM.match(lines[index]):
      index = _add_items(lines, index, result)
    else:
      result.append(_inline(lines[index]))
      index += 1
  return result


def _with_whole_code(lines: list[str]) -> list[str]:
  """Joins lines between which something in backticks is broken."""
  result: list[str] = []
  for line in lines:
    if result and result[-1].count('`') % 2:
      result[-1] += ' ' + line.strip()
    else:
      result.append(line)
  return result


def _indented(lines: list[str], start: int) -> tuple[list[str], int]:
  """Returns the indented lines from `start` on, dedented, and their end."""
  end = start
  while end < len(lines) and (not lines[end] or lines[end].startswith(' ')):
    end += 1
  return textwrap.dedent('\n'.join(lines[start:end])).strip('\n').split(
      '\n') if any(lines[start:end]) else [], end


def _section(title: str, body: list[str]) -> list[str]:
  if title.startswith('Example'):
    return ['.. code-block:: pycon' if body[0].startswith('>>>') else '::', '',
            *('  ' + line for line in body)]
  if title.startswith(_OF_ENTRIES):
    return _entries(body)
  return to_rst('\n'.join(body)) if title.startswith(_OF_TEXT) else _block(body)


def _entries(body: list[str]) -> list[str]:
  """Returns a list of `name: text`, the name first."""
  result, index = [], 0
  while index < len(body):
    entry = _ENTRY.match(body[index])
    more, end = _indented(body, index + 1)
    if entry:
      # What begins beside the name goes on below it.
      result += ['', '``' + entry[1].strip('`') + '``',
                 *('  ' + line for line in to_rst(
                     '\n'.join(filter(None, [entry[2], *more])) or '..'))]
      index = end
    else:
      result.append(_inline(body[index]))
      index += 1
  return [*result, '']


def _block(body: list[str]) -> list[str]:
  """Returns a list as a list, and an equation or a program as it stands."""
  if _ITEM.match(body[0]):
    return ['', *to_rst('\n'.join(body)), '']
  return ['', '::', '', *('  ' + line for line in body), '']


def _add_items(lines: list[str], index: int, result: list[str]) -> int:
  """Adds one item of a list; returns where the next lines begin."""
  marker = _ITEM.match(lines[index])[0]
  if result and result[-1] and not result[-1].startswith(' '):
    result.append('')
  more, end = _indented(lines, index + 1)
  text = to_rst('\n'.join([lines[index][len(marker):], *more]))
  result.append(marker + text[0])
  result += [' ' * len(marker) + line if line else '' for line in text[1:]]
  result.append('')
  return end


def _inline(line: str) -> str:
  """Returns a line in which only backticks mean something."""
  parts = re.split(r'(`[^`]+`)', line)
  texts = [f'`{part}`' if index % 2 else re.sub(r'([*|_\\`])', r'\\\1', part)
           for index, part in enumerate(parts)]
  # A letter behind code needs something in between, which is not shown.
  return ''.join(text + '\\ ' * (index % 2 and following[:1].isalnum())
                 for index, (text, following) in enumerate(
                     zip(texts, [*texts[1:], ''])))


def _process(app, what, name, obj, options, lines) -> None:
  del app, what, name, obj, options
  lines[:] = to_rst('\n'.join(lines))


def setup(app) -> dict:
  """Is called by Sphinx."""
  app.connect('autodoc-process-docstring', _process)
  return {'parallel_read_safe': True}
