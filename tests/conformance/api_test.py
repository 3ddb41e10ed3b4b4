# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the public API: packages export the names that they declare."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import subprocess
import sys
import types

import pytest

import tfplugin

_MAIN = "\nif __name__ == '__main__':"
_PACKAGES = ('tfplugin', 'tfplugin.optimizers', 'tfplugin.estimator',
             'tfplugin.hooks', 'tfplugin.distribute')

# The names that old programs spell; each must stay importable from the top.
_PROMISED = (
    'CrossShardOptimizer',
    'DropStaleGradientOptimizer',
    'ElasticAverageCustomGetter',
    'ElasticAverageOptimizer',
    'TowerOptimizer',
    'VariableClippingOptimizer',
    'cross_replica_sum',
    'replicate_model_fn',
)


def _public(package) -> dict:
  return {name: getattr(package, name) for name in package.__all__}


def _documented_objects() -> list:
  """Every function, class and method that a user can reach, with its name."""
  found = {}
  for package in map(importlib.import_module, _PACKAGES):
    for name, value in _public(package).items():
      if inspect.isclass(value) or inspect.isfunction(value):
        found[f'{package.__name__}.{name}'] = value
      if inspect.isclass(value):
        found.update({
            f'{package.__name__}.{name}.{key}': member
            for key, member in vars(value).items()
            if not key.startswith('_') and inspect.isfunction(member)})
  return sorted(found.items())


@pytest.mark.parametrize('name', _PACKAGES)
def test_all_is_a_sorted_tuple_without_repeats(name):
  exported = importlib.import_module(name).__all__
  assert isinstance(exported, tuple)
  assert list(exported) == sorted(set(exported))


def test_each_package_of_the_api_pages_is_loaded_on_first_use():
  pages = pathlib.Path(__file__).parents[2] / 'docs' / 'api'
  names = sorted({path.stem for path in pages.glob('*.md')} - {'index'})
  assert 'report' in names
  subprocess.run([sys.executable, '-c', '; '.join(
      ['import tfplugin', *(f'tfplugin.{name}' for name in names)])],
                 check=True)


@pytest.mark.parametrize('name', _PACKAGES)
def test_all_equals_the_public_names(name):
  package = importlib.import_module(name)
  # Modules of the package show up when they are imported; they are no API.
  names = {key for key, value in vars(package).items()
           if not key.startswith('_') and key != 'annotations'
           and not isinstance(value, types.ModuleType)}
  exported = {key for key in package.__all__
              if not isinstance(getattr(package, key), types.ModuleType)}
  # What is loaded on first use is exported without being there yet.
  assert names <= exported
  assert all(hasattr(package, key) for key in exported)


@pytest.mark.parametrize('name', _PACKAGES)
def test_nothing_of_tensorflow_leaks(name):
  package = importlib.import_module(name)
  for key, value in _public(package).items():
    home = getattr(value, '__module__', 'tfplugin')
    assert home.startswith('tfplugin'), f'{name}.{key} comes from {home}'


@pytest.mark.parametrize('name', _PROMISED)
def test_promised_name_is_exported(name):
  assert name in tfplugin.__all__


def test_every_public_object_is_documented():
  undocumented = [name for name, value in _documented_objects()
                  if not inspect.getdoc(value)]
  assert not undocumented


def _overrides_tensorflow(name: str) -> bool:
  """Tells whether a method has its signature from a class of TensorFlow."""
  owner, _, method = name.rpartition('.')
  module, _, class_name = owner.rpartition('.')
  cls = getattr(sys.modules.get(module), class_name, None)
  return inspect.isclass(cls) and any(
      hasattr(base, method) for base in cls.__mro__
      if not base.__module__.startswith('tfplugin'))


def test_every_public_signature_is_annotated():
  missing = []
  for name, value in _documented_objects():
    if _overrides_tensorflow(name):
      continue
    function = value.__init__ if inspect.isclass(value) else value
    if not inspect.isfunction(function):
      continue
    for parameter in inspect.signature(function).parameters.values():
      if (parameter.name not in ('self', 'cls')
          and parameter.kind not in (parameter.VAR_KEYWORD,
                                     parameter.VAR_POSITIONAL)
          and parameter.annotation is parameter.empty):
        missing.append(f'{name}({parameter.name})')
  assert not missing


def _is_program(name: str) -> bool:
  origin = importlib.util.find_spec(name).origin
  return bool(origin) and _MAIN in pathlib.Path(origin).read_text('utf-8')


def test_every_module_can_be_imported_first():
  # The reverse order of the alphabet shows a module that works only because
  # another was imported before. Programs may define the same flag twice; the
  # wheel's test imports each in a process of its own.
  names = sorted((module.name for module in pkgutil.walk_packages(
      tfplugin.__path__, 'tfplugin.')), reverse=True)
  program = '\n'.join(
      f'import {name}' for name in names if not _is_program(name))
  result = subprocess.run(
      [sys.executable, '-c', program], capture_output=True, text=True,
      timeout=120, check=False,
      env={'PYTHONPATH': ':'.join(filter(None, sys.path)),
           'TF_CPP_MIN_LOG_LEVEL': '2'})
  assert result.returncode == 0, result.stderr


def test_the_package_is_typed():
  assert (pathlib.Path(tfplugin.__file__).parent / 'py.typed').is_file()
