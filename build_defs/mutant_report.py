# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page that shows what mutation testing has found."""

from __future__ import annotations

import collections
import posixpath
from collections.abc import Sequence

from build_defs import equivalent_mutants
from build_defs import mutants as mutants_lib

Outcomes = Sequence[tuple[mutants_lib.Mutant, str]]

_KINDS = ('killed', 'survived', 'equivalent', 'not run')
_TEXT = '''\
# Mutation testing

Written by `make mutants`. It changes a line of a source: the changed file is a
mutant. Then it runs the tests of that file, and of its folder's contract, that
run the line. If one fails, the mutant is killed. A mutant that survives shows a
missing test, or is equivalent: the change has no effect.

    make mutants ARGS='--seed={seed} --limit={limit} --paths {paths}'

{chosen} of {population} mutants were chosen at random, with seed {seed}. Of
the mutants that ran and are not equivalent, {share} were killed.
'''


def render(outcomes: Outcomes, population: int, seed: int,
           paths: Sequence[str]) -> str:
  """Returns the page.

  Args:
    outcomes: Each mutant of the sample, and one of `killed`, `survived`,
      `equivalent` and `not run`.
    population: How many mutants there were to choose from.
    seed: What chose them.
    paths: The files, or folders, that they are of.
  """
  kinds = collections.Counter(outcome for _, outcome in outcomes)
  seen = kinds['killed'] + kinds['survived']
  share = f'{kinds["killed"] / seen:.1%}' if seen else 'none'
  return _TEXT.format(seed=seed, limit=len(outcomes), paths=' '.join(paths),
                      chosen=len(outcomes), population=population, share=share
                     ) + _table(_counts(outcomes)) + _listed(outcomes)


def _counts(outcomes: Outcomes) -> list[tuple]:
  """Returns the rows of the table of folders."""
  counts = collections.Counter(
      (posixpath.dirname(mutant.file), outcome) for mutant, outcome in outcomes)
  folders = sorted({folder for folder, _ in counts})
  return [('folder', *_KINDS)] + [
      (f'`{folder}`', *(counts[folder, kind] for kind in _KINDS))
      for folder in folders]


def _listed(outcomes: Outcomes) -> str:
  """Returns the tables of survivors and of equivalent mutants."""
  text = ''
  for kind, title in (('survived', 'Survivors'), ('equivalent', 'Equivalent')):
    rows = sorted((mutant.file, mutant.line, mutant.function, mutant.before,
                   mutant.after, equivalent_mutants.REASONS.get(mutant.key))
                  for mutant, outcome in outcomes if outcome == kind)
    if rows:
      text += f'\n## {title}\n' + _table(
          [('place', 'line', 'changed to', 'why')[:4 - (kind == 'survived')]]
          + [(f'{file}:{line}, `{function}`', _code(before), _code(after),
              reason)[:4 - (kind == 'survived')]
             for file, line, function, before, after, reason in rows])
  return text


def _code(line: str) -> str:
  mark = '``' if '`' in line else '`'
  return mark + line.replace('|', '\\|') + mark


def _table(rows: Sequence[Sequence]) -> str:
  rows = [rows[0], ['---'] * len(rows[0]), *rows[1:]]
  return '\n' + ''.join(f'| {" | ".join(map(str, row))} |\n' for row in rows)
