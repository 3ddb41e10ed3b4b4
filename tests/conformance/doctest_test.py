# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the example of every docstring."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pathlib
import pkgutil

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

_MAIN = "\nif __name__ == '__main__':"
_PACKAGES = ('', '.contrib', '.distribute', '.estimator', '.events', '.hooks',
             '.optimizers', '.report')
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _examples() -> list:
  """Every docstring with an example, in whatever module it stands."""
  finder = doctest.DocTestFinder(exclude_empty=True)
  names = ['tfplugin', *(module.name for module in pkgutil.walk_packages(
      tfplugin.__path__, 'tfplugin.'))]
  found = []
  for name in names:
    # Two programs may define the same flag, so only one could be imported.
    if not _is_program(name):
      module = importlib.import_module(name)
      found += [test for test in finder.find(module, name) if test.examples]
  return found


def _is_program(name: str) -> bool:
  origin = importlib.util.find_spec(name).origin
  return bool(origin) and _MAIN in pathlib.Path(origin).read_text('utf-8')


def _public() -> set:
  """The docstrings of public names, whose examples users copy."""
  modules = [importlib.import_module(f'tfplugin{package}')
             for package in _PACKAGES]
  return {getattr(module, name).__doc__
          for module in modules for name in module.__all__}


def _globals(test: doctest.DocTest) -> dict:
  """What an example may use without importing it; a public one: nothing."""
  if test.docstring in _public():
    return {'__name__': '__main__'}  # As at Python's prompt.
  return {**test.globs, 'np': np, 'tf': tf, 'tf1': tf.compat.v1,
          'tfplugin': tfplugin}


@pytest.mark.sampled(3)
@pytest.mark.parametrize('test', _examples(), ids=lambda test: test.name)
def test_example_of(test, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)  # An example may write files.
  test.globs = _globals(test)
  runner = doctest.DocTestRunner(optionflags=_FLAGS, verbose=False)
  report = []
  runner.run(test, out=report.append)
  assert not runner.failures, ''.join(report)
  assert not tf.compat.v1.get_default_graph().building_function
