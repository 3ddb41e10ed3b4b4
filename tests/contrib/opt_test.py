# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.opt; old_names_test.py walks its names."""

import pytest

import tfplugin
from tfplugin.contrib import opt


def test_holds_the_public_classes_and_functions():
  for ours in opt.OLD.ours:
    assert getattr(tfplugin, ours.__name__) is ours
    assert getattr(opt, ours.__name__) is ours


def test_another_name_says_what_is_held():
  first = opt.__all__[0]
  with pytest.raises(AttributeError, match=(
      rf'contrib\.opt\.Lost.*It holds contrib\.opt\.{first}')):
    opt.Lost  # noqa: B018 (the access raises)
