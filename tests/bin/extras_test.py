# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the packages that only the programs need."""

import importlib.util

import pytest

from tfplugin.bin import extras


def test_nothing_is_missing_here():
  extras.check_installed()


def test_what_is_missing_is_named_with_the_command(monkeypatch):
  find = importlib.util.find_spec
  monkeypatch.setattr(importlib.util, 'find_spec',
                      lambda name: None if name == 'rich' else find(name))
  with pytest.raises(RuntimeError, match=(
      r"need rich.*python -m pip install 'tfplugin\[train\]'")):
    extras.check_installed()
