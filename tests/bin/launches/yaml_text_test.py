# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the YAML of plain data."""

import textwrap

import pytest

from tfplugin.bin.launches import yaml_text

_DOCUMENT = {
    'kind': 'Job', 'name': 'a-b.c/d', 'text': '{"a": $(B)}\n\tü',
    'none': 'null',
    'No': 'no', 'number': '12', 'count': 12, 'sure': True, 'empty': {},
    'list': ['python', '-c', 'print(1)'], 'codes': [1, 2], 'nothing': [],
    'deep': {'items': [{'a': {'b': 1}, 'c': [{'d': 'e f'}]}, {'g': False}]},
    'key with: colon': '', '- x': '#'}


def test_as_written_by_hand():
  # In YAML 1.1 `no` is a truth value, `null` nothing, `12` a number.
  assert yaml_text.to_yaml(_DOCUMENT) == textwrap.dedent('''\
      kind: Job
      name: a-b.c/d
      text: "{\\"a\\": $(B)}\\n\\tü"
      none: "null"
      "No": "no"
      number: "12"
      count: 12
      sure: true
      empty: {}
      list: ["python", "-c", "print(1)"]
      codes: [1, 2]
      nothing: []
      deep:
        items:
        - a:
            b: 1
          c:
          - d: "e f"
        - g: false
      "key with: colon": ""
      "- x": "#"
      ''')


def test_a_reader_of_yaml_finds_what_was_written():
  yaml = pytest.importorskip('yaml', reason='PyYAML is not installed.')
  assert yaml.safe_load(yaml_text.to_yaml(_DOCUMENT)) == _DOCUMENT
