# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""YAML of plain data, such as a manifest, without a library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

# Strings without quotes: neither a number nor a word that some YAML parsers
# read as a boolean or null.
_PLAIN = re.compile(r'(?!(y|n|yes|no|on|off|true|false|null)$)[a-z][\w./-]*',
                    re.IGNORECASE | re.ASCII)


def to_yaml(document: Mapping[str, Any]) -> str:
  """Returns a document as YAML, with a newline at the end.

  It consists of mappings, lists, strings, integers and booleans. An empty
  mapping or list is written as such.

  Example:
    >>> document = {'a': {'b': [{'c': 'x y', 'd': 1}], 'e': [1, 2]}}
    >>> print(to_yaml(document), end='')
    a:
      b:
      - c: "x y"
        d: 1
      e: [1, 2]
  """
  return '\n'.join(_lines(document)) + '\n'


def _lines(mapping: Mapping[str, Any]) -> Iterator[str]:
  for key, value in mapping.items():
    if isinstance(value, Mapping) and value:
      yield f'{_inline(key)}:'
      yield from ('  ' + line for line in _lines(value))
    elif isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
      yield f'{_inline(key)}:'
      for item in value:
        for number, line in enumerate(_lines(item)):
          yield ('  ' if number else '- ') + line
    else:
      yield f'{_inline(key)}: {_inline(value)}'


def _inline(value: Any) -> str:
  if isinstance(value, str) and _PLAIN.fullmatch(value):
    return value
  return json.dumps(value, ensure_ascii=False)
