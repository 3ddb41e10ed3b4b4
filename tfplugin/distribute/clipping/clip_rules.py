# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules that select variables to clip, and the dimensions of their slices.

A rule is a variable, a regular expression over variable names or a predicate of
a name, with the dimensions that one slice extends over. Without dimensions each
value is clipped by itself.

A variable that Keras casts counts as the variable behind the cast.
"""

from __future__ import annotations

import dataclasses
import difflib
import operator
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1

# The rows that are measured after a sparse gradient.
ROWS = ('touched', 'all')

# Keys: see `parse`. Values: an int or a sequence of ints.
Rules = Union[Mapping[Any, Any], Sequence[tuple[Any, Any]]]


@dataclasses.dataclass(frozen=True)
class Rule:
  """One selection; messages have `wanted` and the user's `argument`."""

  wanted: str
  selects: Callable[[tf.Variable], bool]
  dims: tuple
  argument: str


def normalize_dims(dims: Sequence[int], rank: int | None,
                   name: str) -> tuple[int, ...]:
  """Returns `dims`, in [-rank, rank), sorted and not negative.

  Example:
    >>> normalize_dims([-1, 0], 3, 'v')
    (0, 2)
  """
  if rank is None:
    raise ValueError(f'The shape of {name!r} must have a known rank. Received: '
                     'an unknown shape. Give the variable a shape, or leave it '
                     'out of the rules.')
  for dim in dims:
    if not -rank <= dim < rank:
      raise ValueError(f'The dims of {name!r} must be in [{-rank}, {rank}), '
                       f'its rank being {rank}. Received: {list(dims)}. Pass '
                       'the dimensions of one slice.')
  positive = sorted(dim % rank for dim in dims)
  if len(set(positive)) != len(positive):
    raise ValueError(f'The dims of {name!r} must not repeat a dimension. '
                     f'Received: {list(dims)}. Name each dimension once.')
  return tuple(positive)


def parse(rules: Rules, argument: str = 'rules') -> tuple[Rule, ...]:
  """Returns the checked rules of a user, a mapping or a sequence of pairs.

  A key is a variable, a PartitionedVariable, `variable.ref()`, a regular
  expression that is searched in variable names, or a predicate of a name. A
  value is a dimension or a sequence of them, which may be empty. Messages name
  the `argument`. Parsed rules are returned as they are.

  Example:
    >>> [rule.dims for rule in parse({'embedding': 1, 'kernel': [0, -1]})]
    [(1,), (0, -1)]
  """
  if isinstance(rules, tuple) and rules and all(
      isinstance(rule, Rule) for rule in rules):
    return rules
  pairs = list(rules.items() if isinstance(rules, Mapping) else
               _pairs(rules, argument))
  if not pairs:
    raise ValueError(f'`{argument}` must name a variable. '
                     f'Received: {rules!r}. '
                     "Pass e.g. {'embedding': 1}.")
  return tuple(_rule(key, _int_tuple(dims, argument), argument)
               for key, dims in pairs)


def check_rows(rows: str) -> None:
  """Raises ValueError unless `rows`, of the user, is one of `ROWS`."""
  if rows not in ROWS:
    raise ValueError(f'`rows` must be one of {ROWS}. Received: {rows!r}')


def resolve(rules: Sequence[Rule],
            variables: Sequence[tf.Variable]) -> dict[Any, tuple[int, ...]]:
  """Returns normalised dims by `own_variable(variable).ref()`."""
  resolved = {}
  variables = unique(variables)
  for rule in rules:
    selected = [v for v in variables if rule.selects(v)]
    if not selected:
      raise ValueError(_nothing_matches(rule, variables))
    for variable in selected:
      name = name_of(variable)
      dims = normalize_dims(rule.dims, variable.shape.rank, name)
      if resolved.setdefault(variable.ref(), dims) != dims:
        raise ValueError(f'`{rule.argument}` must give {name!r} one set of '
                         f'dims. Received: {resolved[variable.ref()]} and '
                         f'{dims}. Leave out one of the rules.')
  return resolved


def selected(rules: Sequence[Rule],
             variables: Sequence[tf.Variable]) -> list[tf.Variable]:
  """Returns the `variables` that rules select; each must select one."""
  dims = resolve(rules, variables)
  return [variable for variable in variables if variable.ref() in dims]


def used_by(rules: Sequence[Rule],
            clipped: Sequence[tf.Variable]) -> set[Rule]:
  """Returns the rules that select one of the `clipped` variables."""
  return {rule for rule in rules if any(map(rule.selects, unique(clipped)))}


def warn_of_unused(rules: Iterable[Rule], variables: Sequence[tf.Variable],
                   updater: str, remedy: str) -> None:
  """Warns about rules of which no variable is updated, and so none clipped.

  The rules may select `variables`, which `updater` updates.
  """
  for rule in rules:
    names = [name_of(v) for v in unique(variables) if rule.selects(v)]
    tf1.logging.warning(
        '`%s` must select variables that %s updates. Received: %r, which '
        'selects %s, without a gradient: the rule clips nothing. %s',
        rule.argument, updater, rule.wanted, names[:5], remedy)


def group_parts(
    variables: Sequence[tf.Variable],
    resolved: Mapping[Any, tuple[int, ...]]) -> list[list[tf.Variable]]:
  """Returns lists of the variables with dims, which are clipped together.

  The parts of a variable that is partitioned along one of its dims share a
  list. The order is as in `variables`, which may have repeats.
  """
  groups = {}
  for variable in unique(variables):
    dims = resolved.get(variable.ref())
    if dims is None:
      continue
    split = _tf_internals.split_of(variable)
    joint = split is not None and set(split[1]) & set(dims)
    key = split[0] if joint else variable.ref()
    groups.setdefault(key, []).append(variable)
  return list(groups.values())


def unique(variables: Sequence[tf.Variable]) -> list[tf.Variable]:
  """Returns the variables, each once, without Keras' casts."""
  own = map(_tf_internals.own_variable, variables)
  return list({variable.ref(): variable for variable in own}.values())


def name_of(variable: tf.Variable) -> str:
  """Returns the name without `:0`."""
  return variable.name.split(':')[0]


def _pairs(rules, argument: str) -> list:
  try:
    pairs = [tuple(pair) for pair in rules]
  except TypeError:
    pairs = None
  if pairs is None or isinstance(rules, str) or any(
      len(pair) != 2 for pair in pairs):
    raise TypeError(f'`{argument}` must be a mapping or a sequence of '
                    f'(variable, dims) pairs. Received: {rules!r}. '
                    "Pass e.g. {'embedding': 1}.")
  return pairs


def _int_tuple(dims, argument: str) -> tuple[int, ...]:
  given = dims
  if isinstance(dims, (str, bytes)):
    dims = [dims]
  try:
    dims = list(dims)
  except TypeError:
    dims = [dims]
  try:
    dims = tuple(operator.index(dim) for dim in dims)
  except TypeError:
    raise TypeError(f'The dims in `{argument}` must be integers. '
                    f'Received: {given!r}. Pass e.g. 1.') from None
  return dims


def _rule(key, dims: tuple[int, ...], argument: str) -> Rule:
  """Returns the rule of one key."""
  if isinstance(key, str):
    key = _expression(key, argument)
  if isinstance(key, re.Pattern):
    return Rule(key.pattern, lambda v: bool(key.search(name_of(v))), dims,
                argument)
  if hasattr(key, 'deref'):
    key = key.deref()
  if hasattr(key, 'as_tensor'):  # A PartitionedVariable; its class is private.
    normalize_dims(dims, key.get_shape().rank, key.name)
    return _rule_of_variables(key, dims, argument)
  if isinstance(key, tf.Variable) or hasattr(key, 'assign'):
    normalize_dims(dims, key.shape.rank, name_of(key))
    return _rule_of_variables(
        [_tf_internals.own_variable(key)], dims, argument)
  if callable(key):
    return Rule(getattr(key, '__name__', repr(key)),
                lambda v: bool(key(name_of(v))), dims, argument)
  raise TypeError(f'A key of `{argument}` must be a variable, its '
                  '`ref()`, a regular expression or a predicate of a name. '
                  f"Received: {key!r}. Pass e.g. 'embedding'.")


def _expression(key: str, argument: str) -> re.Pattern:
  try:
    return re.compile(key)
  except re.error as error:
    raise ValueError(
        f'A string in `{argument}` must be a regular expression '
        f'({error}). Received: {key!r}. `re.escape` makes one of a name.'
    ) from error


def _rule_of_variables(variables, dims: tuple[int, ...],
                       argument: str) -> Rule:
  first, *_ = variables
  selected = {variable.ref() for variable in variables}
  return Rule(name_of(first), lambda v: v.ref() in selected, dims, argument)


def _nothing_matches(rule: Rule, variables: Sequence[tf.Variable]) -> str:
  """Returns the message for a rule without a variable, with similar names."""
  names = sorted({name_of(v) for v in variables})
  near = difflib.get_close_matches(rule.wanted, names, n=3, cutoff=0.4)
  return (f'`{rule.argument}` must select trained variables. Received: '
          f'{rule.wanted!r}, which selects none of {len(names)}. Near names: '
          f'{near or names[:5]}')
