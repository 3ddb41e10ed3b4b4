# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacement of members of TensorFlow and Keras for a while.

Each replacement of private names that ends is made here. Those that stay until
the process ends are listed in docs/private_tensorflow.md.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

_LOCK = threading.RLock()
# Not the same: a replica may ask, while the one that builds it holds that one.
_LOCK_OF_STAYING = threading.Lock()
_INHERITED = object()
# Attribute of a function that stays replaced.
_STAYS = 'tfplugin_stays'


@contextlib.contextmanager
def replaced(owner: Any,
             **replacements: Callable[[Any], Any]) -> Iterator[None]:
  """Replaces members of `owner`, a module, class or object, for all threads.

  `replacements` has a function for each member, from the old one to the new
  one. A member that `owner` inherits is inherited again afterwards.
  """
  before = {name: vars(owner).get(name, _INHERITED) for name in replacements}
  try:
    for name, replacement in replacements.items():
      setattr(owner, name, replacement(getattr(owner, name)))
    yield
  finally:
    for name, member in before.items():
      if member is not _INHERITED:
        setattr(owner, name, member)
      elif name in vars(owner):
        delattr(owner, name)


@contextlib.contextmanager
def replaced_in_turn(owner: Any,
                     **replacements: Callable[[Any], Any]) -> Iterator[None]:
  """Replaces as `replaced`; another thread waits until the old ones are back.

  It is for contexts in which one thread builds a model. A context that lasts
  for a training, or that threads which wait for each other enter, would block.
  """
  with _LOCK, replaced(owner, **replacements):
    yield


def stay_replaced(owner: Any,
                  **replacements: Callable[[Callable], Callable]) -> None:
  """Replaces functions of a module or class until the process ends, once each.

  What replaces one of them for a while wraps it, and so has its mark, too. A
  library that wraps one of them copies the mark by `functools.wraps`.
  """
  with _LOCK_OF_STAYING:
    for name, replacement in replacements.items():
      original = getattr(owner, name)
      if not hasattr(original, _STAYS):
        stays = functools.wraps(original)(replacement(original))
        setattr(stays, _STAYS, True)
        setattr(owner, name, stays)
