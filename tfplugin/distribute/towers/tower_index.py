# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tower the caller is being built in."""

from __future__ import annotations

import tensorflow as tf


def current_tower() -> int:
  """Returns the index of the tower that the caller is built in.

  An int, known while the graph is built; 0 where there are no towers. A
  model_fn may log or name things with it; what it computes must not depend on
  it.

  Example:
    >>> import tfplugin
    >>> tfplugin.distribute.current_tower()
    0
  """
  return getattr(tf.distribute.get_replica_context(), 'tower', 0)
