# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Docstrings of this house become what Sphinx reads."""
# BUILD data: //:sources

from __future__ import annotations

import importlib.util
import textwrap

import pytest

from tests.docs import pages


@pytest.fixture(name='to_rst')
def _to_rst():
  spec = importlib.util.spec_from_file_location(
      'house_docstrings', pages.DOCS / '_ext/house_docstrings.py')
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)

  def convert(text):
    lines = module.to_rst(textwrap.dedent(text).strip('\n'))
    return '\n'.join(line for line in lines if line)

  return convert


@pytest.mark.parametrize('text', ['The rule:', 'It does this. The rule:'])
def test_an_equation_is_shown_as_it_stands(to_rst, text):
  assert to_rst(f'''
      {text}

        d = rate * (a - b)
        a -= d
      ''').endswith('::\n  d = rate * (a - b)\n  a -= d')


def test_a_text_that_ends_with_a_colon_is_no_title(to_rst):
  assert to_rst('''
      Each worker of the
      Cluster, in turn:
        1. reads;
        2. writes.
      ''') == ('Each worker of the\nCluster, in turn:\n1. reads;\n2. writes.')


def test_only_backticks_mean_something(to_rst):
  assert to_rst('A `x_` of |y|, z_ and *args.') == (
      r'A ``x_`` of \|y\|, z\_ and \*args.')


def test_a_letter_behind_code(to_rst):
  assert to_rst('Some `Saver`s.') == r'Some ``Saver``\ s.'


def test_code_that_goes_over_a_line(to_rst):
  assert to_rst('A `long\nname` here.') == 'A ``long name`` here.'


def test_arguments_are_a_list(to_rst):
  assert to_rst('''
      Args:
        x: The first,
          in two lines.
        *args: More.
      ''') == ('**Args**\n``x``\n  The first,\n  in two lines.\n'
               '``*args``\n  More.')


def test_items_are_a_list(to_rst):
  assert to_rst('''
      Rules:
        * The first
          one.
        * The second.
      ''') == '**Rules**\n* The first\n  one.\n* The second.'


def test_an_example_is_a_session(to_rst):
  assert to_rst('''
      Example:
        >>> 1 + 1
        2
      ''') == '**Example**\n.. code-block:: pycon\n  >>> 1 + 1\n  2'
