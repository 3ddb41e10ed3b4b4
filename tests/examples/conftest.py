# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads a program of examples/ as a module."""

import importlib.util
import pathlib

import pytest
from absl import flags

_EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples'


@pytest.fixture
def load_example():
  """Returns a function from a program's name to its module.

  Programs define flags of the same names; each test forgets those of its own.
  """
  before = set(flags.FLAGS)

  def load(name):
    spec = importlib.util.spec_from_file_location(
        name, _EXAMPLES / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

  yield load
  for name in set(flags.FLAGS) - before:
    delattr(flags.FLAGS, name)
