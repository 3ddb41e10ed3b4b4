# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The front page of the site answers a user's ten questions."""
# BUILD data: //:sources

from __future__ import annotations

import re

import pytest

from tests.docs import pages

# The questions of a user: the pages that answer them.
_ANSWERS = {
    'How do I install it?': {'start/install.md'},
    'How do I move my program of TensorFlow 1.15?': {
        'start/move_from_contrib.md', 'start/parameter_servers.md'},
    'Which wrapper do I need?': {
        'start/which_wrapper.md', 'choosing_a_wrapper.md'},
    'How do I run it on my three machines?': {'start/in_a_cluster.md'},
    'How do I run it on Kubernetes or Slurm?': {'start/in_a_cluster.md'},
    'What happens if a machine dies?': {
        'reliability.md', 'cluster/what_happens_when.md'},
    'How do I watch a run?': {'report.md'},
    'How do I choose a communication period?': {
        'choosing_a_wrapper.md', 'speed.md'},
    'How fast is it?': {'speed.md'},
    'What is not supported, what is stable, how do I report a bug?': {
        'limitations.md', 'stability.md', 'troubleshooting.md'},
}
# Of the same questions, by a word of each: what the page has to say.
_SAID = {
    'install': ('start/install.md', "pip install 'tfplugin[cpu]'"),
    'move': ('start/move_from_contrib.md', 'tf.disable_v2_behavior()'),
    'Which': ('start/which_wrapper.md', '../wrappers/elastic_averaging.md'),
    'machines': ('start/in_a_cluster.md', '--hosts=a,b,c'),
    'Kubernetes': ('start/in_a_cluster.md', 'kubectl apply -f -'),
    'Slurm': ('start/in_a_cluster.md', 'srun --ntasks='),
    'dies': ('reliability.md', 'SIGTERM'),
    'watch': ('report.md', 'tfplugin-report'),
    'period': ('choosing_a_wrapper.md', '`communication_period=10`'),
    'fast': ('speed.md', 'asynchronous SGD'),
    'supported': ('limitations.md', '## Refused'),
    'stable': ('stability.md', '## Public names'),
    'bug': ('stability.md', 'python -m tfplugin'),
}
_WRAPPERS = sorted(path.stem for path in (pages.DOCS / 'wrappers').iterdir())
# What a reader looks for on the page of a wrapper, in this order.
_PARTS = ['The rule', 'The three forms', 'Settings that matter',
          'Guarantees', 'Assumptions', 'Costs',
          'When something fails', 'Not claimed', 'References']


def _rows(page: str = 'index.md') -> dict:
  """The links behind each question."""
  lines = re.findall(r'^\| ([^|]+\?) \| (.+) \|$', pages.text_of(page), re.M)
  return {question: {link.partition('#')[0] for link in re.findall(
      r'\]\(([^)]+)\)', answer)} for question, answer in lines}


def test_each_question_leads_to_its_answer():
  assert _rows() == _ANSWERS


@pytest.mark.parametrize('word', _SAID)
def test_the_page_behind_a_question_answers_it(word):
  page, said = _SAID[word]
  question, = (each for each in _ANSWERS if word in each)
  assert page in _rows()[question]
  assert said in pages.text_of(page)


@pytest.mark.parametrize('question', _ANSWERS)
def test_readme_leads_to_an_answer(question):
  links = {link.partition('#')[0] for link in pages.links('../README.md')}
  assert links & {f'docs/{page}' for page in _ANSWERS[question]}


@pytest.mark.parametrize('page', [
    'docs/limitations.md', 'docs/stability.md', 'docs/troubleshooting.md',
    'SECURITY.md'])
def test_readme_leads_to_the_limits_and_to_help(page):
  assert page in pages.links('../README.md')


def test_the_maintainers_questions_are_in_contributing():
  rows = _rows('../CONTRIBUTING.md')
  assert len(rows) == 10
  for links in rows.values():
    assert not [link for link in links
                if link and not (pages.ROOT / link).is_file()]


def test_the_front_page_has_a_picture_and_two_commands():
  assert [link for link in pages.links('index.md')
          if link.endswith('.svg')] == ['pictures/overview.svg']
  commands = ''.join(pages.blocks('index.md', 'sh')).split('\n')
  assert commands == ["pip install 'tfplugin[cpu,train]'", 'tfplugin-train', '']


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


def _listed(page: str, caption: str = '') -> list:
  """The pages of a table of contents, by its caption where it has one."""
  body, = (each for each in pages.blocks(page, '{toctree}')
           if f':caption: {caption}' in each or not caption)
  return [f'{line.strip()}.md' for line in body.splitlines()
          if line.strip() and not line.startswith(':')]


def test_user_pages_name_no_test():
  internal = {'evidence.md', 'evidence_cluster.md', 'chaos.md', 'mutants.md',
              *_listed('index.md', 'Internals')}
  named = {page for page in pages.pages()
           if re.search(r'_test\b|`test_', re.sub(
               r'<!--.*?-->', '', pages.text_of(page), flags=re.S))}
  assert named <= internal


def test_there_is_a_page_for_each_wrapper():
  assert len(_WRAPPERS) == 5


def test_one_page_has_the_table_of_situations():
  assert [page for page in pages.pages() if re.search(
      r'^\| your situation \| wrapper \|$', pages.text_of(page), re.M)] == [
          'start/which_wrapper.md']


def test_a_page_leads_to_each_example():
  linked = {link.partition('/blob/main/')[2]
            for link in pages.links('start/move_from_contrib.md')}
  assert {f'examples/{path.name}' for path in (
      pages.ROOT / 'examples').glob('*.py')} <= linked
