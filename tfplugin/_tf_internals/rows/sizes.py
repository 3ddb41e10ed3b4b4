# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes of tensors as ops, which tell whose rows they count."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

# The functions behind `tf.shape`, `tf.size`, `tf.ones_like`, `tf.zeros_like`.
from tensorflow.python.ops import array_ops

from tfplugin._tf_internals import replacing


@contextlib.contextmanager
def sizes_as_ops(applies: Callable[[Any], bool]) -> Iterator[None]:
  """Makes functions that count the rows of a tensor read that tensor.

  By default the size of a static shape is a constant: it does not tell what it
  counts. `applies` returns whether a tensor has rows. The public functions have
  no such argument. Those behind them are replaced for a while.
  """
  by_input, by_tensor = (functools.partial(_reading, applies, name)
                         for name in ('input', 'tensor'))
  with replacing.replaced_in_turn(
      array_ops, shape_internal=by_input, size_internal=by_input,
      ones_like_impl=by_tensor, array_like_impl=by_tensor):
    yield


def _reading(applies: Callable[[Any], bool], argument: str,
             function: Callable) -> Callable:
  """Returns `function`, with an op as its result where `applies` is True."""
  signature = inspect.signature(function)

  @functools.wraps(function)  # An inner context reads the signature.
  def size(*args, **kwargs):
    bound = signature.bind(*args, **kwargs)
    if applies(bound.arguments[argument]):
      bound.arguments['optimize'] = False
    return function(*bound.args, **bound.kwargs)

  return size
