# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The troubleshooting page quotes messages that the package has."""
# BUILD data: //:sources

from __future__ import annotations

import ast
import re

import pytest

from tests.docs import pages

_PAGE = 'troubleshooting.md'
_OF_TENSORFLOW = "TensorFlow's own messages"


def _quoted() -> list:
  """Messages in first cells, without those of TensorFlow."""
  text = pages.text_of(_PAGE)
  begin = text.index(_OF_TENSORFLOW)
  text = text[:begin] + text[text.index('\n## ', begin):]
  return [message for cell in re.findall(r'^\| ([^|]+) \|', text, re.M)
          for message in re.findall(r'`([^`]+)`', cell) if ' ' in message]


def _literals() -> str:
  """The strings of the package; a value in one is a line's end."""
  found = []
  for path in sorted((pages.ROOT / 'tfplugin').rglob('*.py')):
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
      if isinstance(node, ast.JoinedStr):
        found.append(''.join(
            part.value if isinstance(part, ast.Constant) else '\n'
            for part in node.values))
      elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        found.append(re.sub(r'%[-+.\d]*[a-z]', '\n', node.value))
  return '\0'.join(found)


@pytest.fixture(name='literals', scope='module')
def fixture_literals():
  return _literals()


def test_messages_are_found():
  assert len(_quoted()) > 25


@pytest.mark.parametrize('message', _quoted())
def test_a_quoted_message_is_one_of_the_package(message, literals):
  pieces = [piece.strip() for piece in message.split('...') if piece.strip()]
  # In this order, in one literal; backquotes stand for themselves there.
  pattern = r'[^\0]*'.join(map(re.escape, pieces))
  assert re.search(pattern, literals), f'{_PAGE}: no message has {pieces}'
