# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values inside a `with`, of a thread or of all replicas."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any


class ContextValue:
  """A value that a `with` changes, such as the current maker of variables."""

  def __init__(self, default: Any):
    """Stores the value outside of all `with`."""
    self._value = contextvars.ContextVar('ContextValue', default=default)

  def get(self) -> Any:
    """Returns the current value."""
    return self._value.get()

  @contextlib.contextmanager
  def set_to(self, value: Any) -> Iterator[None]:
    """Sets the value inside it."""
    token = self._value.set(value)
    try:
      yield
    finally:
      self._value.reset(token)


class Inside:
  """Whether a `with` is active in any replica of a strategy.

  Replicas take turns at a merge call. Inside one, each has entered the `with`,
  and the first one leaves it while the others are still inside.

  Example:
    >>> is_applying = Inside()
    >>> with is_applying:
    ...   bool(is_applying)
    True
    >>> bool(is_applying)
    False
  """

  def __init__(self):
    """Starts outside."""
    self._number = 0

  def __bool__(self) -> bool:
    """Returns whether a replica is inside."""
    return self._number > 0

  def __enter__(self) -> None:
    """Enters in one replica."""
    self._number += 1

  def __exit__(self, *unused_error) -> None:
    """Leaves in one replica."""
    self._number -= 1


# Whether the variables that are made now are shared by all workers. A wrapper
# that keeps the inner optimizer's state on the worker leaves these as they are.
is_shared = ContextValue(False)
