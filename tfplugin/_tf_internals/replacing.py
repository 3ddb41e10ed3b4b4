# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacement of functions of TensorFlow and Keras for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

_LOCK = threading.RLock()


@contextlib.contextmanager
def replaced(owner: Any,
             **replacements: Callable[[Any], Any]) -> Iterator[None]:
  """Replaces members of `owner`, a module or class, for all threads.

  `replacements` has a function for each member, from the old one to the new
  one. Another thread waits until the old ones are back.
  """
  with _LOCK:
    before = {name: getattr(owner, name) for name in replacements}
    try:
      for name, replacement in replacements.items():
        setattr(owner, name, replacement(before[name]))
      yield
    finally:
      for name, member in before.items():
        setattr(owner, name, member)
