# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A value is of the innermost `with`, in its thread."""

import threading

import pytest

from tfplugin.distribute import per_graph


def test_the_value_is_that_of_the_innermost_with():
  value = per_graph.ContextValue('outside')
  with pytest.raises(KeyError), value.set_to('outer'):
    with value.set_to('inner'):
      assert value.get() == 'inner'
    assert value.get() == 'outer'
    raise KeyError
  assert value.get() == 'outside'


def test_another_value_and_another_thread_are_left_alone():
  value, other = (per_graph.ContextValue(0) for _ in range(2))
  seen = []
  with value.set_to(1):
    thread = threading.Thread(target=lambda: seen.append(value.get()))
    thread.start()
    thread.join(10)
    assert other.get() == 0
  assert seen == [0]


def test_a_function_may_be_called_within():
  value = per_graph.ContextValue(0)
  get = value.set_to(1)(value.get)
  assert [get(), get(), value.get()] == [1, 1, 0]
