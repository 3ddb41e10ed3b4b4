# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads a program of examples/ as a module."""

import importlib.util
import pathlib

import pytest
from absl import flags

_ROOT = pathlib.Path(__file__).absolute().parents[2]


@pytest.fixture
def load_example():
  """Returns a function from a program's path to its module.

  Programs define flags of the same names; each test forgets those of its own.
  """
  before = set(flags.FLAGS)

  def load(path):
    path = _ROOT / path
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

  yield load
  for name in set(flags.FLAGS) - before:
    delattr(flags.FLAGS, name)
