# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of marking variables that all workers share."""

import threading

import pytest

from tfplugin.distribute.variables import shared_variables


def test_marks_inside_alone_and_also_after_an_error():
  assert not shared_variables.is_shared()
  with pytest.raises(KeyError), shared_variables.shared():
    with shared_variables.shared():
      pass
    assert shared_variables.is_shared()
    raise KeyError
  assert not shared_variables.is_shared()


def test_another_thread_is_not_marked():
  seen = []
  with shared_variables.shared():
    thread = threading.Thread(
        target=lambda: seen.append(shared_variables.is_shared()))
    thread.start()
    thread.join(10)
  assert seen == [False]
