# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registry of the names of `tf.contrib`: places today, and replacements."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.compat import module_aliases


@dataclasses.dataclass(frozen=True)
class _OldFolder:
  """A folder of contrib's source files, such as `opt.python`."""

  path: str

  def __getattr__(self, name: str) -> Any:
    path = f'{self.path}.{name}'
    files = module_aliases.CONTRIB_FILES
    if path in files:
      return importlib.import_module(files[path])
    if any(file.startswith(f'{path}.') for file in files):
      return _OldFolder(path)
    raise AttributeError(
        f'tfplugin has no `contrib.{path}`. The public names of the file are '
        f'in `contrib.{path.partition(".")[0]}`.')


@dataclasses.dataclass(frozen=True)
class OldNames:
  """The names of one module, and the object behind each of them today.

  A module that stands in for the old one takes `__getattr__` from `get` and
  `__dir__` from `dir`. A name of TensorFlow is looked up when the user asks for
  it, so that importing the module loads nothing.

  `module` is the user's name for it, such as `contrib.opt`. `ours` are the
  classes and functions of tfplugin that the module has imported. `moved` maps
  names to their paths in TensorFlow 2.15, `tf.` in front, and `notes` has
  changes for their callers. `gone` maps the other names to a replacement.

  Example:
    >>> names = OldNames('contrib.music', moved={'scan': 'tf.scan'})
    >>> names.held
    ('scan',)
    >>> names.get('scan') is tf.scan
    True
  """

  module: str
  ours: Sequence[Any] = ()
  moved: Mapping[str, str] = dataclasses.field(default_factory=dict)
  gone: Mapping[str, str] = dataclasses.field(default_factory=dict)
  notes: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def held(self) -> tuple[str, ...]:
    """The available names, sorted."""
    return tuple(sorted([*(x.__name__ for x in self.ours), *self.moved]))

  def dir(self) -> list[str]:
    """Returns the same as a list; a module's `__dir__`."""
    return list(self.held)

  def get(self, name: str) -> Any:
    """Returns TensorFlow's object of another path; a module's `__getattr__`.

    Raises an AttributeError with the replacement of a name that is gone.
    """
    if name in self.moved:
      path = self.moved[name]
      try:
        return functools.reduce(getattr, path.split('.')[1:], tf)
      except AttributeError as error:
        raise AttributeError(
            f'`{self.module}.{name}` is `{path}`, which TensorFlow '
            f'{tf.__version__} no longer has. {self.notes.get(name, "")}'
        ) from error
    if name in self.gone:
      raise AttributeError(f'`{self.module}.{name}` ended with TensorFlow '
                           f'1.15. Instead: {self.gone[name]}.')
    if name == 'python':
      return _OldFolder(f'{self.module.partition(".")[2]}.python')
    names = ', '.join(f'{self.module}.{held}' for held in self.held)
    raise AttributeError(f'tfplugin has no `{self.module}.{name}`. '
                         f'It holds {names}.')


def same(path: str, names: str) -> dict[str, str]:
  """Returns `OldNames.moved` of names that kept their spelling, now at `path`.

  Example:
    >>> same('tf.data', 'Dataset Options')
    {'Dataset': 'tf.data.Dataset', 'Options': 'tf.data.Options'}
  """
  return {name: f'{path}.{name}' for name in names.split()}
