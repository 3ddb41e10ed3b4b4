# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The reference shows every public name, and docstrings have their sections."""
# BUILD data: //:sources
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap

import pytest

import tfplugin
import tfplugin.testing
from tests.docs import pages

# Each has a page of its own.
_PACKAGES = ('distribute', 'estimator', 'events', 'hooks', 'optimizers',
             'report')
# A part of a helper, which users may read but not rely on.
_NO_API = {'contract_models'}


def _api(page: str) -> str:
  return pages.text_of(f'api/{page}.md')


def _shown(page: str) -> set:
  """The names for which a page has a directive that shows the docstring."""
  return set(re.findall(r'^\.\. (?:autoclass|autofunction|data):: (\w+)$',
                        _api(page), re.M))


def _listed(page: str) -> set:
  """The names in the table at the head of a page, without their modules."""
  table = re.search(r'\.\. autosummary::\n(.*?)\n(?=\S)', _api(page), re.S)[1]
  return set(re.findall(r'^   (?:~[\w.]*\.)?(\w+)$', table, re.M))


@pytest.mark.parametrize('name', _PACKAGES)
def test_a_package_shows_each_public_name(name):
  public = set(importlib.import_module(f'tfplugin.{name}').__all__)
  assert _shown(name) == public
  assert _listed(name) == public


def test_the_first_page_shows_each_name_of_tfplugin():
  assert _listed('index') | {'__version__'} == set(tfplugin.__all__)
  elsewhere = set().union(*map(_shown, ('optimizers', 'estimator')))
  assert set(tfplugin.__all__) <= _shown('index') | elsewhere


def test_contrib_shows_its_modules():
  from tfplugin import contrib
  modules = re.findall(r'automodule:: tfplugin\.contrib\.(\w+)',
                       _api('contrib'))
  assert {*modules, *_shown('contrib')} == set(contrib.__all__)
  assert _listed('contrib') == set(contrib.__all__)


def test_the_helpers_of_tests_are_shown():
  modules = {module.name for module in pkgutil.iter_modules(
      tfplugin.testing.__path__)}
  shown = set(re.findall(
      r'automodule:: tfplugin\.testing\.(\w+)\n   :members:', _api('testing')))
  assert shown == modules - _NO_API


def test_the_pages_name_each_hook():
  hooks = importlib.import_module('tfplugin.hooks').__all__
  page = pages.text_of('cluster/hooks.md')
  assert not [hook for hook in hooks if f'| `{hook}` |' not in page]


def _functions() -> dict:
  """Public functions, constructors and methods, by their names."""
  found = {}
  for package in ('', *_PACKAGES):
    module = importlib.import_module(f'tfplugin.{package}'.rstrip('.'))
    for name in module.__all__:
      value = getattr(module, name)
      if inspect.isfunction(value):
        found[f'{module.__name__}.{name}'] = (value, '')
      elif inspect.isclass(value):
        found.update({f'{module.__name__}.{name}.{key}': (member, value)
                      for key, member in vars(value).items()
                      if inspect.isfunction(member)
                      and (key == '__init__' or not key.startswith('_'))})
  return found


def _is_told_by_base(function, owner) -> bool:
  """Whether a method's arguments are those of a class above it."""
  return bool(owner) and function.__name__ != '__init__' and any(
      hasattr(base, function.__name__) for base in owner.__mro__[1:])


def _text(function, owner) -> str:
  doc = inspect.getdoc(function) or ''
  return doc + '\n' + (inspect.getdoc(owner) or '') if (
      owner and function.__name__ == '__init__') else doc


def _raises(function) -> set:
  """The classes of the errors that the body raises by itself."""
  if function.__code__.co_filename == '<string>':  # Of a dataclass.
    return set()
  tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
  return {node.exc.func.id for node in ast.walk(tree)
          if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
          and isinstance(node.exc.func, ast.Name)
          and node.exc.func.id.endswith('Error')}


def test_each_argument_is_in_the_docstring():
  missing = []
  for name, (function, owner) in _functions().items():
    if _is_told_by_base(function, owner):
      continue
    text = _text(function, owner)
    missing += [
        f'{name}({argument})'
        for argument in inspect.signature(function).parameters
        if argument not in ('self', 'cls') and not re.search(
            rf'^ +\*{{0,2}}{argument}: ', text, re.M)]
  assert not missing


def test_each_error_that_is_raised_is_in_the_docstring():
  missing = [
      f'{name}: {error}' for name, (function, owner) in _functions().items()
      if not _is_told_by_base(function, owner)
      for error in _raises(function)
      if not re.search(rf'^ +.*\b{error}\b.*:|{error}', _text(function, owner),
                       re.M)]
  assert not missing
