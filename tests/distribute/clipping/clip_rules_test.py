# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules that select variables to clip."""

import pytest
import tensorflow as tf

from tfplugin.distribute.clipping import clip_rules


def _variables():
  return [tf.Variable(tf.zeros(shape), name=name)
          for name, shape in (('embedding/table', [4, 2]),
                              ('dense/kernel', [2, 3]), ('dense/bias', [3]))]


def _resolve(rules, variables=None):
  variables = variables or _variables()
  resolved = clip_rules.resolve(clip_rules.parse(rules), variables)
  return {clip_rules.name_of(v): resolved[v.ref()]
          for v in variables if v.ref() in resolved}


@pytest.mark.parametrize('dims, rank, want', [
    ([1], 2, (1,)), ([-1], 2, (1,)), ([-2], 2, (0,)), ([2, 0], 3, (0, 2)),
    ([-1, 0], 1 + 1, (0, 1)), ([], 2, ()), ([], 0, ())])
def test_normalize_dims(dims, rank, want):
  assert clip_rules.normalize_dims(dims, rank, 'v') == want


@pytest.mark.parametrize('dims, rank, text', [
    ([2], 2, 'must be in'), ([-3], 2, 'must be in'), ([0], 0, 'must be in'),
    ([1, -1], 2, 'must not repeat'), ([0, 0], 2, 'must not repeat')])
def test_dims_that_do_not_fit(dims, rank, text):
  with pytest.raises(ValueError, match=f"'v' {text}.*Received: "):
    clip_rules.normalize_dims(dims, rank, 'v')


def test_a_variable_of_unknown_rank():
  with pytest.raises(ValueError, match="'v' must have a known rank.*shape"):
    clip_rules.normalize_dims([-1], None, 'v')


@pytest.mark.parametrize('rules, want', [
    ({'table$': 1}, {'embedding/table': (1,)}),
    ({'^dense/': -1}, {'dense/kernel': (1,), 'dense/bias': (0,)}),
    ([('kernel', [0]), ('table', [0, 1])],
     {'embedding/table': (0, 1), 'dense/kernel': (0,)}),
    ({(lambda name: 'bias' in name): [0]}, {'dense/bias': (0,)}),
])
def test_rules_by_name(rules, want):
  assert _resolve(rules) == want


def test_rules_by_variable():
  variables = _variables()
  want = {'embedding/table': (1,)}
  assert _resolve({variables[0].ref(): 1}, variables) == want
  assert _resolve([(variables[0], (1,))], variables) == want


def test_rules_may_agree_but_not_contradict():
  assert _resolve({'table': 1, 'embed': -1}) == {'embedding/table': (1,)}
  with pytest.raises(ValueError, match='one set of dims.*embedding/table|'
                     "'embedding/table' one set of dims"):
    _resolve({'table': 1, 'embed': 0})


def test_a_rule_that_selects_nothing_lists_near_names():
  with pytest.raises(ValueError, match="'embeding/tabel'.*Near names: "
                     r"\['embedding/table'"):
    _resolve({'embeding/tabel': 1})


@pytest.mark.parametrize('rules, error, text', [
    ({}, ValueError, 'must name a variable'),
    ([], ValueError, 'must name a variable'),
    (None, TypeError, 'must be a mapping'),
    ('table', TypeError, 'must be a mapping'),
    (['table'], TypeError, 'must be a mapping'),
    ({'table': 1.5}, TypeError, 'must be integers'),
    ({'table': 'x'}, TypeError, 'must be integers'),
    ({'table': None}, TypeError, 'must be integers'),
    ({3: 1}, TypeError, 'A key of'),
])
def test_malformed_rules(rules, error, text):
  with pytest.raises(error, match=f'{text}.*Received: '):
    clip_rules.parse(rules)


def test_dims_of_a_variable_are_checked_at_once():
  variable = tf.Variable(tf.zeros([2, 2]), name='v')
  with pytest.raises(ValueError, match=r'must be in \[-2, 2\)'):
    clip_rules.parse([(variable, [2])])


def test_a_string_must_be_a_regular_expression():
  with pytest.raises(ValueError, match=r"regular expression.*Received: '\('"):
    clip_rules.parse({'(': 0})


def test_a_variable_that_is_there_twice_is_one():
  table, kernel, _ = variables = _variables()
  resolved = clip_rules.resolve(
      clip_rules.parse({'table|kernel': 1}), [*variables, table])
  groups = clip_rules.group_parts([table, kernel, table], resolved)
  assert [[v.name for v in group] for group in groups] == [
      [table.name], [kernel.name]]


def test_a_variable_that_keras_casts_is_the_one_it_casts():
  layer = tf.keras.layers.Dense(1, dtype='mixed_bfloat16', name='cast')
  layer.build([None, 1])
  own, = clip_rules.unique([layer.kernel, layer.kernel])
  assert own is not layer.kernel
  for key, variables in ((layer.kernel, [own]), (own, [layer.kernel]),
                         ('kernel', [layer.kernel])):
    resolved = clip_rules.resolve(clip_rules.parse([(key, 0)]), variables)
    assert resolved == {own.ref(): (0,)}
    assert clip_rules.group_parts(variables, resolved) == [[own]]


def test_unknown_rows_are_refused():
  for rows in clip_rules.ROWS:
    clip_rules.check_rows(rows)
  with pytest.raises(ValueError, match="`rows` must be .*Received: 'some'"):
    clip_rules.check_rows('some')


def test_a_variable_that_is_not_trained_is_named():
  other = tf.Variable(tf.zeros([2]), name='other')
  with pytest.raises(ValueError, match=(
      "Received: 'other', which selects none of 3. Near names: ")):
    _resolve({other.ref(): 0})
