# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The small changes of a source that a good test notices.

One mutant is one change: a comparison with another bound, `and` for `or`, `+`
for `-`, a number that is one larger, a default that is the opposite, a
condition turned round, a check or an error left out; and None for a result in
which nothing else can be changed. What people read is left alone: docstrings,
annotations and the texts of errors.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import operator
from collections.abc import Iterator

_OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}
# `_OPERATORS` has their opposite.
_TURNED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclasses.dataclass(frozen=True)
class Mutant:
  """One change of one file.

  Attributes:
    file: The file, relative to the root.
    line: Where the change begins, from 1.
    function: The function around it, dotted; `module` outside of any.
    before: That line, as it was.
    after: That line, as it is now.
    lines: The first and the last line of what a test must run to notice: the
      statement, or the function if an argument of it has changed. None: any.
    text: The text of the file with the change.
  """

  file: str
  line: int
  function: str
  before: str
  after: str
  lines: tuple[int, int] | None
  text: str = dataclasses.field(repr=False)

  @property
  def key(self) -> tuple[str, str, str]:
    """What stays the same when lines above are added or removed."""
    return self.file, self.function, self.after


def mutants(file: str, source: str) -> list[Mutant]:
  r"""Returns every mutant of a file, in the order of its text.

  Args:
    file: What `Mutant.file` says.
    source: The text of the file.

  Example:
    >>> for mutant in mutants('a.py', 'def f(x=1):\n  return x < 0\n'):
    ...   print(mutant.line, mutant.function, mutant.after)
    1 f def f(x=2):
    2 f return (x <= 0)
    2 f return x < 1
  """
  data = source.encode()
  lines = data.splitlines(keepends=True)
  found: list[tuple[int, Mutant]] = []
  for node, function, must_run in _nodes(ast.parse(source), 'module'):
    if not hasattr(node, 'lineno'):  # Arguments, an operator, a context.
      continue
    at = node.lineno - 1
    start = sum(map(len, lines[:at])) + node.col_offset
    end = sum(map(len, lines[:node.end_lineno - 1])) + node.end_col_offset
    for change in _changes(node):
      text = (data[:start] + change.encode() + data[end:]).decode()
      found.append((start, Mutant(
          file, node.lineno, function, lines[at].decode().strip(),
          text.splitlines()[at].strip(), must_run, text)))
  return [mutant for _, mutant in sorted(found, key=operator.itemgetter(0))]


def _nodes(node: ast.AST, function: str,
           lines: tuple[int, int] | None = None) -> Iterator[tuple]:
  """Yields what may be changed below `node`, the function, `Mutant.lines`."""
  for field, child in _children(node):
    inside = function
    if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
      inside = f'{function}.{child.name}'.removeprefix('module.')
    must_run = _lines_of(child, lines)
    yield child, inside, must_run
    if isinstance(node, (ast.If, ast.While, ast.IfExp)) and field == 'test':
      yield _Condition(child), inside, must_run
    if not isinstance(child, ast.Raise):  # Its text is for people.
      yield from _nodes(child, inside, must_run)


def _lines_of(node: ast.AST, around: tuple[int, int] | None,
             ) -> tuple[int, int] | None:
  """Returns the lines that run with `node`, which is between those `around`."""
  if isinstance(node, ast.FunctionDef):
    return node.lineno, node.end_lineno
  if around is None or not isinstance(node, ast.stmt):
    return around
  body = getattr(node, 'body', None)  # Its statements have their own lines.
  last = body[0].lineno - 1 if body else node.end_lineno
  return node.lineno, max(node.lineno, last)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
  """Yields the parts of `node` that are not for people, and their fields."""
  for field, value in ast.iter_fields(node):
    if field not in ('annotation', 'returns', 'decorator_list', 'bases'):
      for child in value if isinstance(value, list) else [value]:
        if isinstance(child, ast.AST) and not _is_for_people(child):
          yield field, child


class _Condition(ast.AST):
  """A condition as such, besides the expression that it is."""

  _attributes = ('lineno', 'col_offset', 'end_lineno', 'end_col_offset')

  def __init__(self, expression: ast.expr):
    super().__init__()
    self.expression = expression
    ast.copy_location(self, expression)


def _is_for_people(node: ast.AST) -> bool:
  is_main = isinstance(node, ast.If) and '__name__' in ast.unparse(node.test)
  is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
  return is_main or is_text or isinstance(node, ast.JoinedStr)


@functools.singledispatch
def _changes(node: ast.AST) -> Iterator[str]:
  """Yields the texts that may stand for `node`."""
  yield from ()


@_changes.register(ast.BinOp)
@_changes.register(ast.BoolOp)
@_changes.register(ast.AugAssign)
def _(node):
  if type(node.op) in _OPERATORS and not _is_text(node):
    changed = copy.copy(node)
    changed.op = _OPERATORS[type(node.op)]()
    text = ast.unparse(changed)
    yield text if isinstance(node, ast.AugAssign) else f'({text})'


@_changes.register(ast.Compare)
def _(node):
  for index, old in enumerate(node.ops):
    changed = copy.copy(node)
    changed.ops = [*node.ops[:index], _OPERATORS[type(old)](),
                   *node.ops[index + 1:]]
    yield f'({ast.unparse(changed)})'


@_changes.register(ast.UnaryOp)
def _(node):
  if isinstance(node.op, (ast.Not, ast.USub)):
    yield f'({ast.unparse(node.operand)})'


@_changes.register(ast.Constant)
def _(node):
  if isinstance(node.value, bool):
    yield str(not node.value)
  elif isinstance(node.value, (int, float)):
    yield repr(node.value + 1)


@_changes.register(ast.Return)
def _(node):
  if node.value and ast.unparse(node.value) != 'None' and not any(
      change for child, *_ in _nodes(node, '') for change in _changes(child)):
    yield 'return None'


@_changes.register(ast.Raise)
def _(node):
  yield 'pass'


@_changes.register(ast.Expr)
def _(node):
  if isinstance(node.value, ast.Call):
    yield 'pass'


@_changes.register(_Condition)
def _(node):
  test = node.expression
  if isinstance(test, (ast.Name, ast.Attribute, ast.Call)) or (
      isinstance(test, ast.Compare) and not isinstance(test.ops[0], _TURNED)):
    yield f'(not ({ast.unparse(test)}))'


def _is_text(node: ast.AST) -> bool:
  """Whether a string is made here: `+` and `%` then mean something else."""
  return isinstance(node, ast.BinOp) and any(
      isinstance(each, ast.JoinedStr) or (
          isinstance(each, ast.Constant) and isinstance(each.value, str))
      for each in (node.left, node.right))
