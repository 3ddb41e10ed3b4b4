# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two runs that share the tests: together all of them, and each pair."""

import copy
import itertools
import types

import pytest

from tests import conftest
from tests import parts
from tfplugin.testing import behaviors

_CELLS = range(40)


class _Item:
  """What is read of a test that pytest has collected."""

  def __init__(self, name, mark=None, **params):
    words = '-'.join(map(str, params.values()))
    self.nodeid = f'tests/a_test.py::{name}[{words}]'
    self.get_closest_marker = {mark: True}.get
    if params:
      self.callspec = types.SimpleNamespace(params=params, id=words)


_ITEMS = [_Item('test_both', behavior=behavior, cell=cell)
          for behavior in behaviors.BEHAVIORS for cell in _CELLS]
_SHARED = [_Item('test_matrix', 'shared', cell=cell) for cell in _CELLS]
_ALONE = [_Item('test_alone'), _Item('test_cells', 'distributed', cell='v3')]


def test_runs_share_behaviors_and_each_plays_every_cell():
  halves = [parts.without_others(_ITEMS, f'{number}/2') for number in (1, 2)]
  assert sorted(map(id, itertools.chain(*halves))) == sorted(map(id, _ITEMS))
  for half in halves:
    assert sorted(item.callspec.params['cell'] for item in half) == [*_CELLS]
    # Neither behaviour is one version's.
    for behavior in behaviors.BEHAVIORS:
      assert sum(item.callspec.params['behavior'] == behavior
                 for item in half) > len(_CELLS) // 4


def test_runs_share_the_cells_of_a_marked_test():
  for count in (2, 5):
    runs = [parts.without_others(_SHARED, f'{number + 1}/{count}')
            for number in range(count)]
    assert sorted(map(id, itertools.chain(*runs))) == sorted(map(id, _SHARED))
    assert min(map(len, runs)) >= len(_CELLS) // count // 2


@pytest.mark.parametrize('items', [_ITEMS, _SHARED], ids=['cells', 'matrix'])
def test_what_a_run_plays_does_not_rest_on_ids(items):
  """Which pytest's versions give in different ways."""

  def others(item):
    test, words = item.nodeid[:-1].split('[')
    first, second = words.split('-') if '-' in words else ('', words)
    renamed = copy.copy(item)
    renamed.callspec = types.SimpleNamespace(
        params=item.callspec.params,
        id='-'.join(filter(None, [first, f'cell{second}'])))
    renamed.nodeid = f'{test}[{renamed.callspec.id}]'
    return renamed

  for part in ('1/2', '2/2'):
    assert [others(item).nodeid
            for item in parts.without_others(items, part)] == [
                item.nodeid for item in parts.without_others(
                    list(map(others, items)), part)]


def test_whatever_else_is_in_every_run():
  for part in ('', '1/2', '2/2', '3/5'):
    assert parts.without_others(_ALONE, part) == _ALONE


def test_without_a_part_everything_is_played():
  assert parts.without_others(_ITEMS + _SHARED, '') == _ITEMS + _SHARED


def test_a_run_leaves_out_what_the_other_plays(monkeypatch):
  halves = {}
  for part in ('1/2', '2/2'):
    monkeypatch.setenv(parts.PART, part)
    halves[part], deselected = [*_ITEMS], []
    conftest.pytest_collection_modifyitems(types.SimpleNamespace(
        hook=types.SimpleNamespace(
            pytest_deselected=lambda items, told=deselected: told.extend(
                items))), halves[part])
    assert len(deselected) == len(_CELLS)
  assert halves['1/2'] == [
      item for item in _ITEMS if item not in halves['2/2']]


@pytest.mark.parametrize('text', ['0/2', '3/2', '1', '1/', '/2', '-1/2', 'a/b'])
def test_what_is_no_part_is_refused(text):
  with pytest.raises(pytest.UsageError, match='`TEST_PART` must be'):
    parts.without_others(_ITEMS, text)
