# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.tpu; old_names_test.py walks its names."""

import pytest

import tfplugin
from tfplugin.contrib import tpu


def test_holds_the_public_classes_and_functions():
  for ours in tpu.OLD.ours:
    assert getattr(tfplugin, ours.__name__) is ours
    assert getattr(tpu, ours.__name__) is ours


def test_another_name_says_what_is_held():
  first = tpu.__all__[0]
  with pytest.raises(AttributeError, match=(
      rf'contrib\.tpu\.Lost.*It holds contrib\.tpu\.{first}')):
    tpu.Lost  # noqa: B018 (the access raises)
