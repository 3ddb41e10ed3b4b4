# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One module under two names is one module, and the real one comes first."""

from __future__ import annotations

import importlib
import pickle
import sys

import pytest

from tfplugin.compat import module_aliases

_REAL = {
    '__init__.py': '',
    'leaf.py': 'class Leaf: pass\nrun = __name__',
    'part/__init__.py': 'value = 3\nfrom real_part import leaf',
    'part/deep.py': 'class Deep: pass',
}


@pytest.fixture
def real(tmp_path, monkeypatch):
  """A package `real_part`, and a finder that ends with the test."""
  for name, text in _REAL.items():
    file = tmp_path / 'real_part' / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
  monkeypatch.syspath_prepend(tmp_path)
  before, finders = set(sys.modules), list(sys.meta_path)
  yield 'real_part'
  sys.meta_path[:] = finders
  for name in set(sys.modules) - before:
    del sys.modules[name]


def _install(aliases, before=None):
  module_aliases.AliasFinder(aliases, before).install()


def test_a_module_is_the_real_one(real):
  _install({'old': real})
  leaf = importlib.import_module('old.leaf')
  assert leaf is importlib.import_module('real_part.leaf')
  assert leaf.run == 'real_part.leaf'
  assert pickle.loads(pickle.dumps(leaf.Leaf)) is leaf.Leaf


def test_a_package_is_loaded_on_first_use_and_never_twice(real):
  _install({'old': real})
  part = importlib.import_module('old.part')
  deep = importlib.import_module('old.part.deep')
  assert part.value == 3
  assert deep is part.deep is importlib.import_module('real_part.part.deep')
  assert 'leaf' in dir(part)
  assert part.__all__ == ['deep', 'leaf', 'value']


def test_a_package_that_is_refused_before_it_is_loaded(real):
  def refuse():
    raise ImportError('not now')

  package = module_aliases.LazyPackage('old', real, refuse)
  for use in (lambda: package.part, lambda: dir(package)):
    with pytest.raises(ImportError, match='not now'):
      use()
  assert real not in sys.modules


def test_asking_for_attributes_of_python_loads_nothing(real):
  package = module_aliases.LazyPackage('old', real)
  assert not hasattr(package, '__file__')
  assert not hasattr(package, '__wrapped__')
  repr(package)
  assert real not in sys.modules


def test_what_exists_is_found_first(real):
  _install({'real_part.leaf': 'json', 'real_part.new': 'json'})
  assert importlib.import_module('real_part.leaf').run == 'real_part.leaf'
  assert importlib.import_module('real_part.new').loads('2') == 2


def test_what_neither_has_is_not_found(real):
  _install({'old': real, 'older': 'no_such_module'})
  for name in ('old.lost', 'old.part.lost', 'older', 'old.leaf.lost'):
    with pytest.raises(ModuleNotFoundError, match=name):
      importlib.import_module(name)
  with pytest.raises(AttributeError, match='lost'):
    importlib.import_module('old').lost  # noqa: B018 (the access raises)


def test_a_module_with_aliases_below_it_is_a_package(real):
  _install({'old': 'real_part.leaf', 'old.python.file': 'real_part.part.deep',
            'old.python': 'real_part.leaf'})
  assert importlib.import_module('old.python.file').Deep
  assert importlib.import_module('old').run == 'real_part.leaf'


def test_what_comes_before_a_module_comes_once_and_may_refuse(real):
  calls = []

  def refuse():
    calls.append('refused')
    if len(calls) == 1:
      raise ImportError('not now')

  _install({'old': real}, {'old.leaf': refuse})
  with pytest.raises(ImportError, match='not now'):
    importlib.import_module('old.leaf')
  for _ in range(2):
    assert importlib.import_module('old.leaf').Leaf
  assert calls == ['refused'] * 2
