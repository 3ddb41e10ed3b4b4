# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.estimator."""

import pytest

import tfplugin
from tfplugin.contrib import estimator


def test_holds_the_public_classes_and_functions():
  for name in estimator.__all__:
    assert getattr(estimator, name) is getattr(tfplugin, name)


def test_another_name_says_what_is_held():
  first = estimator.__all__[0]
  with pytest.raises(AttributeError, match=(
      rf'contrib\.estimator\.Lost.*It holds contrib\.estimator\.{first}')):
    estimator.Lost  # noqa: B018 (the access raises)
