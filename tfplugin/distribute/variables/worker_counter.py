# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exact counter that each worker keeps separately."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

from tfplugin.distribute.variables import worker_variables


class WorkerCounter:
  """An `int64` local variable that starts at 0 and counts events of a worker.

  The variable is not in checkpoints. A session that ran only the global
  initialiser, or restored a checkpoint, can use it: a counter that is not
  initialised counts as 0.

  Variables created:
    <name>: int64, [], local; on the worker.

  Example:
    >>> counter = WorkerCounter('steps')
    >>> _ = counter.increment(), counter.increment()
    >>> int(counter.value())
    2
  """

  def __init__(self, name: str, device: str = ''):
    """Creates the variable under its full name, without outer scopes.

    `device` is the worker's; empty means the session's own.
    """
    self.variable = worker_variables.create(
        lambda: tf.zeros([], tf.int64), name, device)

  def increment(self, where: Optional[tf.Tensor] = None) -> tf.Operation:
    """Returns an op that adds 1, unless the bool scalar `where` is false."""
    added = 1 if where is None else tf.cast(where, tf.int64)
    return self.variable.assign(self.value() + added)

  def value(self) -> tf.Tensor:
    """Returns the count as an `int64` scalar."""
    return tf.cond(self.variable.is_initialized(), self.variable.read_value,
                   lambda: tf.zeros([], tf.int64))
