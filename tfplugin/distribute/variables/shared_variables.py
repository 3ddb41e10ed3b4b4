# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables of all workers, where a wrapper makes others local."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tfplugin.distribute.variables import context_value

_sharing = context_value.ContextValue(False)


def shared() -> AbstractContextManager:
  """Marks the variables made inside it as shared by all workers.

  A wrapper that keeps the inner optimizer's state on the worker calls
  `is_shared` in its variable creator, and does not change a shared variable.

  Example:
    >>> with shared():
    ...   is_shared()
    True
    >>> is_shared()
    False
  """
  return _sharing.being(True)


def is_shared() -> bool:
  """Returns whether a variable that is made now is shared by all workers."""
  return _sharing.get()
