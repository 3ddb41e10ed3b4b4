# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Context manager for TensorFlow's v1 or v2 behaviour, in one process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

tf1 = tf.compat.v1

BEHAVIORS = ('v1', 'v2')


@contextlib.contextmanager
def behavior(name: str) -> Iterator[None]:
  """Switches TensorFlow's behaviour for the block and back to v2 after it.

  v1: ref variables, control flow v1, no eager execution. v2: resource
  variables, control flow v2. The block starts outside any graph; the implicit
  global graph is dropped when a v1 block ends.

  Args:
    name: `'v1'` or `'v2'`.

  Yields:
    Nothing.

  Raises:
    ValueError: `name` is neither.
  """
  if name not in BEHAVIORS:
    raise ValueError(f'`name` must be one of {BEHAVIORS}. Received: {name!r}')
  if name == 'v2':
    yield
    return
  tf1.disable_v2_behavior()
  try:
    yield
  finally:
    # TensorFlow refuses to switch back while the implicit global graph exists.
    tf1.reset_default_graph()
    tf1.enable_v2_behavior()
