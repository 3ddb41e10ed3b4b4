# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples of the tests: each has every value, and together they have all."""

import collections
import copy
import itertools
import types

import pytest

from tests import conftest
from tests import sampling
from tfplugin.testing import behaviors

_MODELS = [f'model{number}' for number in range(9)]
_FORMS = [f'form{number}' for number in range(20)]


class _Item:
  """Stand-in for a test that pytest has collected."""

  def __init__(self, name, count=None, **params):
    words = '-'.join(map(str, params.values()))
    self.nodeid = f'tests/a_test.py::{name}[{words}]'
    self.get_closest_marker = lambda _: count and types.SimpleNamespace(
        args=(count,))
    if params:
      self.callspec = types.SimpleNamespace(params=params)


def _product(name, count=None, **params):
  return [_Item(name, count, **dict(zip(params, values)))
          for values in itertools.product(*params.values())]


_BOTH = _product('test_both', behavior=behaviors.BEHAVIORS, form=_FORMS)
_MATRIX = _product('test_matrix', 5, behavior=behaviors.BEHAVIORS,
                   model=_MODELS, form=_FORMS)
_TABLE = _product('test_table', 20, form=range(5), program=range(40))
_LIST = _product('test_list', 4, form=_FORMS)
_ALONE = [_Item('test_alone'), *_product('test_cells', form=_FORMS)]


def _values(items, name):
  return collections.Counter(item.callspec.params[name] for item in items)


def test_a_sample_has_one_behavior_of_each_cell():
  first, second = (sampling.sample(_BOTH, number) for number in ('0', '1'))
  for sample in (first, second):
    assert _values(sample, 'form') == collections.Counter(_FORMS)
    assert _values(sample, 'behavior') == {'v1': 10, 'v2': 10}
  assert sorted(map(id, first + second)) == sorted(map(id, _BOTH))


def test_tests_of_one_cell_are_of_either_behavior():
  items = [item for number in range(40) for item in _product(
      f'test_{number}', behavior=behaviors.BEHAVIORS)]
  assert min(_values(sampling.sample(items, '0'), 'behavior').values()) > 10


@pytest.mark.parametrize('number', range(7))
def test_a_sample_of_a_matrix_has_every_value(number):
  sample = sampling.sample(_MATRIX, str(number))
  assert len(_MATRIX) // 2 // 5 <= len(sample) < len(_MATRIX) // 2 // 3
  assert set(_values(sample, 'model')) == set(_MODELS)
  assert min(_values(sample, 'behavior').values()) > len(sample) // 3


@pytest.mark.parametrize('number', range(20))
def test_a_table_of_many_programs_runs_over_several_samples(number):
  sample = sampling.sample(_TABLE, str(number))
  assert set(_values(sample, 'form')) == set(range(5))
  assert len(_values(sample, 'program')) < 16


@pytest.mark.parametrize(
    'items, count', [(_MATRIX, 10), (_LIST, 4), (_TABLE, 20)],
    ids=['matrix', 'list', 'table'])
def test_samples_have_all_cells_together(items, count):
  found = {id(item) for number in range(count)
           for item in sampling.sample(items, str(number))}
  assert found == set(map(id, items))


def test_a_list_has_no_value_twice():
  assert len(sampling.sample(_LIST, '3')) == len(_LIST) // 4


def test_rows_that_are_alike_are_different_cells():
  rows = [_Item('test_rows', 1, x=1), _Item('test_rows', 1, x=1)]
  assert sampling.sample(rows, '0') == rows


@pytest.mark.parametrize('items', [_BOTH, _MATRIX, _LIST],
                         ids=['both', 'matrix', 'list'])
def test_a_sample_does_not_rest_on_ids(items):
  """Versions of pytest give different ids."""

  def renamed(item):
    other = copy.copy(item)
    other.nodeid = f'{item.nodeid.partition("[")[0]}[{id(item)}]'
    return other

  copies = [renamed(item) for item in items]
  chosen = [copies.index(item) for item in sampling.sample(copies, '1')]
  assert chosen == [
      items.index(item) for item in sampling.sample(items, '1')]


@pytest.mark.parametrize('number', ['', 'all'])
def test_everything(number):
  items = _BOTH + _MATRIX
  assert sampling.sample(items, number) == items


def test_what_is_in_every_sample():
  for number in '012':
    assert sampling.sample(_ALONE, number) == _ALONE


@pytest.mark.parametrize('number', ['-1', 'half', '1/2'])
def test_a_bad_number_is_refused(number):
  with pytest.raises(pytest.UsageError, match='`TEST_SAMPLE` must be'):
    sampling.sample(_BOTH, number)


def test_what_is_left_out_is_counted(monkeypatch):
  monkeypatch.setenv(sampling.SAMPLE, '0')
  items, deselected = [*_BOTH], []
  conftest.pytest_collection_modifyitems(types.SimpleNamespace(
      hook=types.SimpleNamespace(
          pytest_deselected=lambda items: deselected.extend(items))), items)
  assert len(items) == len(deselected) == len(_FORMS)
  assert not set(map(id, items)) & set(map(id, deselected))
