# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the ops of a graph are put."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

tf1 = tf.compat.v1


@contextlib.contextmanager
def only_on(device: str) -> Iterator[None]:
  """Puts ops on `device`, whatever device scopes and setters are around it.

  Inside `replica_device_setter` a variable goes to a parameter server, and the
  device scope alone would be merged with that.

  Args:
    device: A full or partial device name; empty for no wish at all.

  Example:
    >>> with tf.Graph().as_default(), tf.compat.v1.device('/job:ps'):
    ...   with only_on('/job:worker'):
    ...     print(tf.constant(1).device)
    /job:worker
  """
  with tf1.device(None), tf1.device(device):
    yield
