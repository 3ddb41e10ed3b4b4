# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two runs that share the tests: together all of them, and each pair."""

import itertools
import types

import pytest

from tests import conftest
from tests import parts
from tfplugin.testing import behaviors

_CELLS = range(40)


class _Item:
  """What is read of a test that pytest has collected."""

  def __init__(self, name, **params):
    words = '-'.join(map(str, params.values()))
    self.nodeid = f'tests/a_test.py::{name}[{words}]'
    if params:
      self.callspec = type('callspec', (), dict(params=params, id=words))


_ITEMS = [_Item('test_both', behavior=behavior, cell=cell)
          for behavior in behaviors.BEHAVIORS for cell in _CELLS]
_ALONE = [_Item('test_alone'), _Item('test_cells', cell='v3')]


def test_runs_share_behaviors_and_each_plays_every_cell():
  halves = [parts.without_others(_ITEMS, f'{number}/2') for number in (1, 2)]
  assert sorted(map(id, itertools.chain(*halves))) == sorted(map(id, _ITEMS))
  for half in halves:
    assert sorted(item.callspec.params['cell'] for item in half) == [*_CELLS]
    # Neither behaviour is one version's.
    for behavior in behaviors.BEHAVIORS:
      assert sum(item.callspec.params['behavior'] == behavior
                 for item in half) > len(_CELLS) // 4


def test_what_has_no_behavior_is_in_every_run():
  for part in ('', '1/2', '2/2', '3/5'):
    assert parts.without_others(_ALONE, part) == _ALONE


def test_without_a_part_everything_is_played():
  assert parts.without_others(_ITEMS, '') == _ITEMS
  assert parts.share([*_CELLS], '') == [*_CELLS]


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


def test_shares_are_the_whole_once():
  for count in (1, 2, 5):
    shares = [parts.share([*_CELLS], f'{number}/{count}')
              for number in range(1, count + 1)]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert sorted(itertools.chain(*shares)) == [*_CELLS]


@pytest.mark.parametrize('text', ['0/2', '3/2', '1', '1/', '/2', '-1/2', 'a/b'])
@pytest.mark.parametrize('function', [parts.share, parts.without_others])
def test_what_is_no_part_is_refused(function, text):
  with pytest.raises(pytest.UsageError, match='`TEST_PART` must be'):
    function(_ITEMS, text)
