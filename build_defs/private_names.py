# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds strings that name private TensorFlow where none belongs.

usage: private_names.py

A name in a string breaks without a word when TensorFlow changes it. Such are
the types of ops, modules, attributes with an underscore, where a function was
made (`__module__`, `__qualname__`), and the texts of errors. Docstrings and the
texts of our own messages are left alone. Offenders are listed; the status is 1
if there are any.
"""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import re
import sys

_ROOT = pathlib.Path(__file__).absolute().parent.parent
# What asks private TensorFlow, and what stands in for parts of it.
_FOLDERS = ('tfplugin/_tf_internals/', 'tfplugin/compat/')

_ATTRIBUTE = re.compile(r'_(?!tfplugin)[a-z]\w*')
_MODULE = re.compile(r'(tensorflow|tensorflow_estimator)(\.\w+)+|keras(\.\w+)*')
# Where a function was made.
_ORIGINS = ('__module__', '__qualname__')
# Documented methods of every named tuple; an EstimatorSpec is one.
_NAMED_TUPLE = ('_asdict', '_fields', '_make', '_replace')
# The documented name of a variable without one, also an op, of old graphs; and
# a documented class of TensorFlow 1.15.
_DOCUMENTED = ('LMDBDataset', 'Variable')
_MATCHERS = ('fullmatch', 'match', 'search')


def private_strings(root: pathlib.Path) -> list[str]:
  """Returns 'file:line: string' for each offender below `root`/tfplugin.

  Args:
    root: The directory of the repository.
  """
  ops = _op_types()
  found = []
  for path in sorted((root / 'tfplugin').rglob('*.py')):
    file = path.relative_to(root).as_posix()
    if not file.startswith(_FOLDERS):
      tree = ast.parse(path.read_text(encoding='utf-8'), file)
      found += [f'{file}:{line}: {name}'
                for line, name in sorted(_offenders(tree, ops))]
  return found


def _op_types() -> frozenset[str]:
  """The types of TensorFlow's ops: the names in `tf.raw_ops`.

  They are read from its file: an import takes seconds.
  """
  package = pathlib.Path(importlib.util.find_spec('tensorflow').origin).parent
  names = frozenset(re.findall(
      r'^from \S+ import (\w+)',
      (package / '_api/v2/raw_ops/__init__.py').read_text(encoding='utf-8'),
      re.M)).difference(_DOCUMENTED)
  if 'AssignVariableOp' not in names:
    raise RuntimeError('The names of `tf.raw_ops` were not found in its file.')
  return names


def _offenders(tree: ast.AST, ops: frozenset[str]) -> set[tuple[int, str]]:
  """Returns the line and the name of each offender."""
  names, left_alone = _own_names(tree), _texts(tree)
  found = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Constant) and id(node) not in left_alone:
      value = node.value
      if isinstance(value, str) and (
          value in ops or value in _ORIGINS or _MODULE.fullmatch(value) or
          _ATTRIBUTE.fullmatch(value) and value not in names):
        found.add((node.lineno, value))
    elif isinstance(node, ast.Attribute) and id(node) not in left_alone:
      if node.attr in _ORIGINS:
        found.add((node.lineno, node.attr))
  return found | _matched_errors(tree)


def _own_names(tree: ast.AST) -> set[str]:
  """Names of named tuples, and those that the file itself assigns."""
  return {*_NAMED_TUPLE, *(
      node.id for node in ast.walk(tree)
      if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))}


def _texts(tree: ast.AST) -> set[int]:
  """Identities of the nodes of docstrings and of f-strings: texts to read."""
  texts = {id(node.value) for node in ast.walk(tree)
           if isinstance(node, ast.Expr)}
  for node in ast.walk(tree):
    if isinstance(node, ast.JoinedStr):
      texts.update(map(id, ast.walk(node)))
  return texts


def _matched_errors(tree: ast.AST) -> set[tuple[int, str]]:
  """Finds handlers that look for a text in the error that they caught."""
  found = set()
  for handler in ast.walk(tree):
    if isinstance(handler, ast.ExceptHandler) and handler.name:
      for node in ast.walk(handler):
        if _is_match(node) and any(
            _is_text_of(part, handler.name) for part in ast.walk(node)):
          found.add((node.lineno, f'the text of `{handler.name}`'))
  return found


def _is_match(node: ast.AST) -> bool:
  """Whether `node` compares with a literal, or with a regular expression."""
  if isinstance(node, ast.Compare):
    # A text with a name in backticks is of this project.
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str)
               and '`' not in part.value
               for part in (node.left, *node.comparators))
  return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
          and node.func.attr in (*_MATCHERS, 'startswith', 'endswith'))


def _is_text_of(node: ast.AST, error: str) -> bool:
  """Whether `node` is `str(error)`, `error.message` or `error.args`."""
  if isinstance(node, ast.Attribute):
    return ast.unparse(node) in (f'{error}.message', f'{error}.args')
  return isinstance(node, ast.Call) and ast.unparse(node) == f'str({error})'


def main() -> int:
  """Prints the offenders; returns the exit status."""
  found = private_strings(_ROOT)
  print('\n'.join(found) or 'No string names private TensorFlow.')
  return 1 if found else 0


if __name__ == '__main__':
  sys.exit(main())
