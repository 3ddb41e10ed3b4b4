# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One name for each wrapper, and what became of earlier ones."""

import pytest

from tfplugin.bin import techniques
from tfplugin.checkpoints import checkpoint_migration
from tfplugin.events import wrapper_names


def test_programs_have_the_same_names():
  assert {*techniques.TECHNIQUES} == {*wrapper_names.WRAPPERS, 'none'}
  assert {*checkpoint_migration.WRAPPERS} == {*wrapper_names.WRAPPERS}


@pytest.mark.parametrize('name', [*wrapper_names.WRAPPERS, 'none', '', None])
def test_a_name_of_today_stays(name):
  assert wrapper_names.current(name) == name


@pytest.mark.parametrize('name', wrapper_names.FORMER)
def test_a_former_name_is_one_of_today(name):
  assert name not in wrapper_names.WRAPPERS
  assert wrapper_names.current(name) in wrapper_names.WRAPPERS
