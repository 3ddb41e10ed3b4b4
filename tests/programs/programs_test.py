# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every program under every form: its own numbers, or refused by name.

The table of what was found is docs/programs.md.
"""
# BUILD data: //:docs
# BUILD shard_count: 2

from __future__ import annotations

import functools
import itertools
import pathlib

import numpy as np
import pytest

from tests.programs import by_hand
from tests.programs import forms
from tests.programs import programs
from tfplugin import distribute
from tfplugin.estimator import decorator_stack

DOCUMENT = pathlib.Path(__file__).parents[2] / 'docs' / 'programs.md'
PROGRAMS = programs.PROGRAMS


@pytest.fixture(scope='module', name='reference')
def fixture_reference():
  """Computes each once; both behaviours have the same numbers."""
  return functools.cache(lambda program, *args: by_hand.reference(
      PROGRAMS[program], *args))


@pytest.mark.sampled(8)
@pytest.mark.parametrize('program', PROGRAMS)
def test_rules_change_the_numbers(reference, program):
  """Otherwise a form that does nothing would pass."""
  splits = PROGRAMS[program].splits
  cases = {}
  for form in forms.FORMS.values():
    split, *rest = args = form.reference_of(PROGRAMS[program])
    cases[(splits.get(split), *rest)] = reference(program, *args)
  values = [np.concatenate([np.ravel(value) for _, value in sorted(
      of_case.items())]) for of_case in cases.values()]
  for number, value in enumerate(values):
    for other in values[:number]:
      assert np.abs(value - other).max() > max(
          1e-3, 10 * PROGRAMS[program].tolerance)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', forms.FORMS)
@pytest.mark.parametrize('program', PROGRAMS)
def test_program(behavior, tmp_path, reference, program, form):
  refused = PROGRAMS[program].refused.get(form)
  if refused:
    with pytest.raises((RuntimeError, TypeError, ValueError),
                       match=refused.says):
      forms.train(PROGRAMS[program], forms.FORMS[form], tmp_path)
    return
  forms.assert_close(
      forms.train(PROGRAMS[program], forms.FORMS[form], tmp_path),
      reference(program, *forms.FORMS[form].reference_of(PROGRAMS[program])),
      PROGRAMS[program].tolerance)


def test_every_form_is_there():
  names = set(forms.FORMS)
  assert {f'`{name}`' for name in decorator_stack.DECORATORS} <= names
  strategies = {name for name in distribute.__all__ if 'Strategy' in name}
  # This one has no rule: tests/distribute/packed compares it with TensorFlow's.
  strategies.remove('PackedParameterServerStrategy')
  assert len(strategies) == 5 and strategies <= names
  short = dict(zip(decorator_stack.DECORATORS, (
      'replicate', 'elastic', 'drop', 'clip', 'cross_shard')))
  for pair in itertools.combinations(short, 2):
    works = [order for order in (pair, pair[::-1])
             if decorator_stack.refusal(*order) is None]
    stacks = [f'{short[above]} above {short[below]}' for above, below in works]
    assert not works or names.intersection(stacks)


def test_every_name_is_one_of_a_cell():
  for program in PROGRAMS.values():
    assert set(program.refused) <= set(forms.FORMS)
    assert set(program.formulas) == set(program.splits)


def test_document_holds_the_tables():
  assert DOCUMENT.read_text() == programs.render(), (
      'run `python -m tests.programs.programs_test`')


if __name__ == '__main__':
  DOCUMENT.write_text(programs.render())
