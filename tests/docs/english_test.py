# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lint of English, on sentences."""
# BUILD data: //:sources

from __future__ import annotations

import pytest

from build_defs import english

_LONG = ' '.join(['word'] * 25)


def _rules(text):
  return [breach.rule for breach in english.breaches('page.md', text)]


@pytest.mark.parametrize('text, rules', [
    ('Returns the tensor behind identity ops.', []),
    ('Returns what `loss` is another name of.', ['riddle']),
    ('Returns the part of the loss that that of one is.', ['riddle']),
    ('A worker that is killed is missed by nobody.', ['word']),
    ('The wrapper is honoured.', ['word']),
    ('What is public?', []),
    ('# What it costs', ['heading']),
    ('## Costs', []),
    ('## What does it cost?', []),
    ('```sh\n# What it costs\n```', []),
    ('[What it costs](costs.md) has the numbers.', []),
    ('`what` is code.', []),
    ('```sh\nwhat\n```', []),
    ('| what | value |\n| --- | --- |\n| the rate | what is left |',
     ['riddle']),
    (f'{_LONG}.', []),
    (f'{_LONG} and one.', ['long']),
    (f'{_LONG}. {_LONG}.', []),
    (f'- {_LONG}\n- {_LONG}', []),
    (f'{_LONG}\n{_LONG}', ['long']),  # One paragraph on two lines.
    (f'| {_LONG} | {_LONG} |', []),
    (f'A table:\n\n  {_LONG}\n  {_LONG}', []),
    (f'- {_LONG}\n  {_LONG}', ['long']),
])
def test_rules_by_hand(text, rules):
  assert _rules(text) == rules


_MODULE = '''
"""A module of what there is."""


def public():
  """Returns what there is.

  Returns:
    What is in a section has a form of its own.
  """


def _private():
  """Returns what there is."""


class Public:
  """A class."""

  def method(self):
    """Returns what there is."""
'''


def test_docstrings_of_public_names_are_read():
  found = list(english.breaches('a.py', english.docstrings(_MODULE)))
  assert [breach.sentence for breach in found] == [
      'A module of what there is.', 'Returns what there is.',
      'Returns what there is.']


@pytest.mark.parametrize('source, found', [
    ('"""Registry of rules."""', []),
    ('"""What rules there are."""', ['no noun']),
    ('"""What\'s allowed."""', ['no noun']),
    ('"""No rule."""', ['no noun']),
    ('"""One rule for all."""', []),
    ('"""Towers and their rules."""', []),
    ('"""Isolated sessions."""', []),
    ('"""On-disk registry."""', []),
    ('def f():\n  """Returns a rule."""', []),
    ('def f():\n  """The rule."""', ['no verb']),
    ('def f():\n  """See base class."""', []),
    ('def f():\n  """Lets a rule act."""', ['no verb']),
    ('class C:\n  @property\n  def f(self):\n    """The rule."""', []),
    ('class C:\n  @property\n  def f(self):\n    """Whether it is."""',
     ['no verb']),
    ('def f():\n  def run():\n    pass', ['run']),
    ('def run():\n  def exchange():\n    pass', []),
    ('def _met_already(told):\n  unseen = 1\n  self.passing = unseen', [
        'met', 'told', 'unseen', 'passing']),
    ('method = surpassing = unseen', []),
])
def test_how_docstrings_begin_and_nested_functions_are_named(source, found):
  assert [breach.found for breach in english.code_breaches('a.py', source)
          ] == found


def test_breaches_of_pages_and_modules_are_listed(tmp_path):
  for file, text in {'docs/page.md': 'See what is there.',
                     'tfplugin/rules.py': '"""What rules there are."""',
                     'tfplugin/_private.py': '"""Rules of nobody."""'}.items():
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
  assert english.broken(tmp_path) == [
      'docs/page.md: See what is there. (riddle: what)',
      'tfplugin/rules.py: What rules there are. (begin: no noun)',
      'tfplugin/rules.py: What rules there are. (riddle: What)']
