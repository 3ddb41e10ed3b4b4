# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes plain data as YAML, as manifests are written by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

# What stands for itself without quotes. Neither a number nor a word that some
# YAML takes for a truth value or for nothing.
_PLAIN = re.compile(r'(?!(y|n|yes|no|on|off|true|false|null)$)[a-z][\w./-]*',
                    re.IGNORECASE | re.ASCII)


def dump(document: Mapping[str, Any]) -> str:
  """Returns a document as YAML.

  Args:
    document: Made of mappings, lists, strings, whole numbers and truth values;
      an empty mapping or list is written as such.

  Returns:
    The text, with a newline at the end.

  Example:
    >>> print(dump({'a': {'b': [{'c': 'x y', 'd': 1}], 'e': [1, 2]}}), end='')
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
