# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.training; old_names_test.py walks its names."""

import pytest

from tfplugin.contrib import training


def test_checkpoints_iterator_is_there(tmp_path):
  # No checkpoint comes in no time.
  assert not list(training.checkpoints_iterator(
      str(tmp_path), timeout=0, timeout_fn=lambda: True))


def test_hyperparameters_are_a_dataclass_today():
  with pytest.raises(AttributeError, match=(
      r'`contrib\.training\.HParams` ended .* Instead: a dataclass, or')):
    training.HParams  # noqa: B018 (the access raises)
