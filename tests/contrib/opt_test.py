# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.opt."""

import pytest

import tfplugin
from tfplugin.contrib import opt


def test_holds_the_public_classes_and_functions():
  for name in opt.__all__:
    assert getattr(opt, name) is getattr(tfplugin, name)


def test_another_name_says_what_is_held():
  first = opt.__all__[0]
  with pytest.raises(AttributeError, match=(
      rf'contrib\.opt\.Lost.*It holds contrib\.opt\.{first}')):
    opt.Lost  # noqa: B018 (the access raises)
