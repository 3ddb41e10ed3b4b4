# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Static sizes of tensors as ops of a graph."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

# The functions behind `tf.shape`, `tf.size`, `tf.ones_like`, `tf.zeros_like`.
from tensorflow.python.ops import array_ops

# With the argument that has the tensor.
_FUNCTIONS = {'shape_internal': 'input', 'size_internal': 'input',
              'ones_like_impl': 'tensor', 'array_like_impl': 'tensor'}
_LOCK = threading.RLock()


@contextlib.contextmanager
def sizes_as_ops(applies: Callable[[Any], bool]) -> Iterator[None]:
  """Makes functions that count the rows of a tensor read that tensor.

  By default the size of a static shape is a constant: it does not tell what it
  counts. `applies` returns whether a tensor has rows. The public functions have
  no such argument. Those behind them are replaced for a while, for all threads;
  hence the lock.
  """
  replaced = {name: getattr(array_ops, name) for name in _FUNCTIONS}
  with _LOCK:
    for name, function in replaced.items():
      setattr(array_ops, name, functools.partial(
          _size, function, _FUNCTIONS[name], applies))
    try:
      yield
    finally:
      for name, function in replaced.items():
        setattr(array_ops, name, function)


def _size(function: Callable, argument: str, applies: Callable[[Any], bool],
          *args: Any, **kwargs: Any) -> Any:
  """Returns the result of `function`, an op where `applies` returns True."""
  bound = inspect.signature(function).bind(*args, **kwargs)
  if applies(bound.arguments[argument]):
    bound.arguments['optimize'] = False
  return function(*bound.args, **bound.kwargs)
