# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads a program of examples/ as a module."""

import contextlib
import importlib.util
import pathlib

import pytest
from absl import flags

_ROOT = pathlib.Path(__file__).absolute().parents[2]


@contextlib.contextmanager
def loader():
  """Yields a function from a program's path to its module.

  Programs define flags of the same names; those of this block are forgotten.
  """
  before = set(flags.FLAGS)

  def load(path):
    path = _ROOT / path
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

  try:
    yield load
  finally:
    for name in set(flags.FLAGS) - before:
      delattr(flags.FLAGS, name)


@pytest.fixture
def load_example():
  """Returns a function from a program's path to its module."""
  with loader() as load:
    yield load
