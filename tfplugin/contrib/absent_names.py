# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The error for a name of `tf.contrib` that tfplugin does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable


def refuse(module: str, held: Sequence[str]) -> Callable[[str], Any]:
  """Returns the `__getattr__` of a module that stands in for a contrib one.

  Args:
    module: What users call the module, such as `contrib.opt`.
    held: The names that it has.

  Returns:
    A function that raises `AttributeError` for every name it is asked for. The
    interpreter asks it only for names that the module lacks.
  """
  names = ', '.join(f'{module}.{name}' for name in held)

  def getattr_of_module(name: str) -> Any:
    message = f'tfplugin has no `{module}.{name}`. It holds {names}.'
    if not name.startswith('__'):
      message += (' What else was in `tf.contrib` ended with TensorFlow 1.15; '
                  'see its migration guide.')
    raise AttributeError(message)

  return getattr_of_module
