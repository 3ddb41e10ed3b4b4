# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Members are replaced for a while, and are afterwards as before."""

from __future__ import annotations

import functools
import types

import pytest

from tfplugin._tf_internals import replacing


class _Base:

  @staticmethod
  def static():
    return 1

  def inherited(self):
    return 2


class _Derived(_Base):
  pass


@pytest.mark.parametrize('replaced', [
    replacing.replaced, replacing.replaced_in_turn])
def test_members_are_put_back_as_they_were(replaced):
  derived = _Derived()
  module = types.SimpleNamespace(number=3)
  static = vars(_Base)['static']
  with pytest.raises(KeyError), replaced(
      _Base, static=lambda old: staticmethod(lambda: old() + 10)), replaced(
          derived, inherited=lambda old: lambda: old() + 10), replaced(
              module, number=lambda old: old + 10):
    assert (derived.static(), derived.inherited(), module.number) == (11, 12,
                                                                      13)
    raise KeyError
  assert (derived.static(), derived.inherited(), module.number) == (1, 2, 3)
  assert vars(_Base)['static'] is static and not vars(derived)


def test_nothing_is_left_of_a_replacement_that_fails():
  derived = _Derived()
  with pytest.raises(ZeroDivisionError), replacing.replaced(
      derived, static=lambda old: lambda: 0, inherited=lambda old: 1 / 0):
    pass
  assert not vars(derived)


def test_a_function_stays_replaced_and_is_so_once():
  module = types.SimpleNamespace(one=lambda: 1)

  def adding(number):
    return lambda old: functools.wraps(old)(lambda: old() + number)

  for _ in range(2):
    replacing.stay_replaced(module, one=adding(10))
  assert module.one() == 11
  with replacing.replaced(module, one=adding(100)):
    replacing.stay_replaced(module, one=adding(10))
    assert module.one() == 111
  assert module.one() == 11
