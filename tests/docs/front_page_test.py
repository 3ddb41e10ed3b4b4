# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The front page of the site answers a newcomer's ten questions."""
# BUILD data: //:sources

from __future__ import annotations

import re

import pytest

from tests.docs import pages

# The question, as the front page asks it: the pages that answer it.
_ANSWERS = {
    'What does this do for me?': {'start/which_wrapper.md'},
    'Which wrapper do I need?': {'start/which_wrapper.md'},
    'What is public?': {'api/index.md'},
    'What is the rule of X?': {
        'wrappers/elastic_averaging.md', 'wrappers/drop_stale_gradients.md',
        'wrappers/towers.md', 'wrappers/variable_clipping.md',
        'wrappers/cross_shard.md'},
    'How does delegation work?': {'architecture.md', 'start/add_a_wrapper.md'},
    'What is the proof that X works?': {'evidence.md', 'testing.md'},
    'How does it differ from contrib?': {
        'differences_from_contrib.md', 'start/move_from_contrib.md'},
    'How do I run everything?': {'testing.md'},
    'How do I write a new wrapper?': {'start/add_a_wrapper.md'},
    'What private TensorFlow is used?': {'private_tensorflow.md'},
}
_WRAPPERS = sorted(path.stem for path in (pages.DOCS / 'wrappers').iterdir())
# What a reader looks for on the page of a wrapper, in this order.
_PARTS = ['The rule', 'The three forms', 'Settings that matter',
          'What it guarantees', 'Assumptions', 'What it costs',
          'When something fails', 'What is not claimed', 'References']


def _rows() -> dict:
  """The links behind each question."""
  lines = re.findall(r'^\| ([^|]+\?) \| (.+) \|$', pages.text_of('index.md'),
                     re.M)
  return {question: {link.partition('#')[0] for link in re.findall(
      r'\]\(([^)]+)\)', answer)} for question, answer in lines}


def test_each_question_leads_to_its_answer():
  assert _rows() == _ANSWERS


def test_the_front_page_has_a_picture_and_two_commands():
  assert [link for link in pages.links('index.md')
          if link.endswith('.svg')] == ['pictures/overview.svg']
  commands = ''.join(pages.blocks('index.md', 'sh')).split('\n')
  assert commands == ['make train', 'make test', '']


def test_evidence_is_behind_a_summary_of_ten_lines():
  table = re.findall(r'^\| [^-].*\.md[^|]*\) \|$', pages.text_of('evidence.md'),
                     re.M)
  assert len(table) == 10


@pytest.mark.parametrize('wrapper', _WRAPPERS)
def test_the_page_of_a_wrapper_has_all_parts(wrapper):
  text = pages.text_of(f'wrappers/{wrapper}.md')
  assert re.findall(r'^## (.+)$', text, re.M) == _PARTS
  assert '$$' in text[:text.index('## The three forms')]
  assert f'](../pictures/{wrapper}.svg)' in text
  for form in ('Strategy', 'Decorator', 'Optimizer'):
    assert f'**{form}.**' in text


def test_there_is_a_page_for_each_wrapper():
  assert len(_WRAPPERS) == 5
