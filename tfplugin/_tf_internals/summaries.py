# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The summaries of replicas."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Optional

import tensorflow as tf

# Whether a replica makes summaries; see `summaries_of_all`.
from tensorflow.python.distribute import summary_op_util

# Held while a function of TensorFlow is replaced.
_LOCK = threading.RLock()


@contextlib.contextmanager
def summaries_of_all(applies: Callable[[], bool]) -> Iterator[None]:
  """Lets `tf.compat.v1.summary` make summaries in all replicas.

  It makes those of the first alone, and what the others would show is lost. A
  private function tells it; it is replaced for a while, for all threads; hence
  the lock, and `applies`.

  Args:
    applies: Whether the current thread is to use it.
  """
  skip = summary_op_util.skip_summary
  with _LOCK:
    summary_op_util.skip_summary = lambda: not applies() and skip()
    try:
      yield
    finally:
      summary_op_util.skip_summary = skip


def summarized_value(op: tf.Operation) -> Optional[tf.Tensor]:
  """Returns the number that `op` is the summary of, input 1 of it, or None.

  No public API tells what an op makes.

  Args:
    op: An operation of a graph.
  """
  return op.inputs[1] if op.type == 'ScalarSummary' else None
