# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Imports of modules by other names, and the names that tf.contrib had."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Mapping
from typing import Any
from typing import Callable

_CONTRIB = 'tensorflow.contrib'
_REAL = 'tfplugin.contrib'
_TPU = 'tensorflow_estimator.python.estimator.tpu'
# The modules that programs of TensorFlow 1.15 import as `tf`.
APIS = ('tensorflow', 'tensorflow.compat.v1')

# Files of contrib that programs import, and the modules with their names.
CONTRIB_FILES = {
    'estimator.python.estimator.replicate_model_fn': f'{_REAL}.estimator',
    'opt.python.training.drop_stale_gradient_optimizer': f'{_REAL}.opt',
    'opt.python.training.elastic_average_optimizer': f'{_REAL}.opt',
    'opt.python.training.variable_clipping_optimizer': f'{_REAL}.opt',
    'tpu.python.ops.tpu_ops': f'{_REAL}.tpu',
    'tpu.python.tpu.tpu_config': f'{_TPU}.tpu_config',
    'tpu.python.tpu.tpu_context': f'{_TPU}.tpu_context',
    'tpu.python.tpu.tpu_estimator': f'{_TPU}.tpu_estimator',
    'tpu.python.tpu.tpu_optimizer': f'{_REAL}.tpu',
}

# The place of the file in 1.15.
_REPLICATE = 'contrib.estimator.python.estimator.replicate_model_fn'

CONTRIB_ALIASES = {
    **{f'{api}.contrib': _REAL for api in APIS},
    # The packages of the files.
    **{f'{_CONTRIB}.{file.rsplit(".", depth)[0]}':
           f'{_REAL}.{file.partition(".")[0]}'
       for file in CONTRIB_FILES for depth in (1, 2, 3)},
    **{f'{_CONTRIB}.{file}': real for file, real in CONTRIB_FILES.items()},
    **{f'tensorflow_estimator.{_REPLICATE.rsplit(".", depth)[0]}':
           f'{_REAL}.estimator' for depth in (2, 3)},
    f'tensorflow_estimator.{_REPLICATE}': f'{_REAL}.estimator',
    'tensorflow_estimator.contrib': _REAL,
    # In this package the file hides the function of the same name.
    **{f'{package}.{_REPLICATE.rsplit(".", 1)[0]}': f'{_REAL}.estimator_files'
       for package in ('tensorflow', 'tensorflow_estimator')},
}


class LazyPackage(types.ModuleType):
  """A package under another name; the real one is loaded on first use.

  Its `__path__` is empty. Otherwise the files of the real package could be
  loaded a second time under the other name, and classes would exist twice.
  `before`, unless None, is called before each access to the real package.

  Example:
    >>> LazyPackage('simplejson', 'json').loads('[1]')
    [1]
  """

  def __init__(self, name: str, real: str,
               before: Callable[[], None] | None = None):
    super().__init__(name, f'The package `{real}` under another name.')
    self.__path__: list[str] = []
    self.__real__ = real
    self.__before__ = before

  def __getattr__(self, name: str) -> Any:
    # Python, doctest and inspect read such names from every module; that must
    # not load the package.
    if name.startswith('__') and name != '__all__':
      raise AttributeError(f'module {self.__name__!r} has no {name!r}')
    module = self.__load__()
    if name == '__all__':
      return [key for key in dir(module) if not key.startswith('_')]
    return getattr(module, name)

  def __dir__(self) -> list[str]:
    return dir(self.__load__())

  def __load__(self) -> types.ModuleType:
    """Returns the real package."""
    if self.__before__ is not None:
      self.__before__()
    return importlib.import_module(self.__real__)

  def __reduce__(self):
    return importlib.import_module, (self.__real__,)


class AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  """Finds modules by other names, after all other finders have failed.

  `aliases` maps each other name to a module, and includes the modules below a
  package. `before` maps some of the names to functions that are called before
  the module is looked up.

  Example:
    >>> finder = AliasFinder({'old.tree': 'xml.etree'})
    >>> finder.real_name('old.tree.ElementTree')
    'xml.etree.ElementTree'
    >>> finder.real_name('old.trees')
  """

  def __init__(self, aliases: Mapping[str, str],
               before: Mapping[str, Callable[[], None]] | None = None):
    self._aliases = dict(aliases)
    self._before = dict(before or {})

  def install(self) -> None:
    """Appends itself to `sys.meta_path`: modules that exist are found first."""
    sys.meta_path.append(self)

  def real_name(self, name: str) -> str | None:
    """Returns the name of the module that `name` is an alias of, or None."""
    head, tail = name, ''
    while head and head not in self._aliases:
      head, _, last = head.rpartition('.')
      tail = f'.{last}{tail}'
    return self._aliases[head] + tail if head else None

  def find_spec(self, fullname: str, path: Any = None, target: Any = None):
    """Implements `importlib.abc.MetaPathFinder`."""
    del path, target
    real = self.real_name(fullname)
    if real is None:
      return None
    if fullname in self._before:
      self._before[fullname]()
    try:
      spec = importlib.util.find_spec(real)
    except ModuleNotFoundError:
      spec = None
    # A module that an AliasFinder has found has no file of its own.
    if spec is None or isinstance(spec.loader, AliasFinder):
      return None
    is_package = spec.submodule_search_locations is not None or any(
        alias.startswith(f'{fullname}.') for alias in self._aliases)
    return importlib.machinery.ModuleSpec(
        fullname, self, origin=real, is_package=is_package)

  def create_module(self, spec: importlib.machinery.ModuleSpec):
    """Implements `importlib.abc.Loader`."""
    if spec.submodule_search_locations is None:
      return None
    return LazyPackage(spec.name, spec.origin)

  def exec_module(self, module: types.ModuleType) -> None:
    """Implements `importlib.abc.Loader`; imports the real module."""
    real = importlib.import_module(module.__spec__.origin)
    if not isinstance(module, LazyPackage):
      sys.modules[module.__spec__.name] = real
