# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates that are made only where they are finite; see `ops/nonfinite.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import cluster_task
from tfplugin.distribute import conditional_update
from tfplugin.distribute.variables import worker_variables
from tfplugin.ops import nonfinite

tf1 = tf.compat.v1


def accepted(on_nonfinite: str, values: Sequence[nonfinite.Value],
             names: Sequence[str], step: tf.Tensor) -> tf.Tensor:
  """Returns whether an update of `values` is made: a bool scalar.

  `on_nonfinite` is `'drop'` or `'raise'`, not `'apply'`. There is at least one
  value, a gradient or a difference. `names`, of the variables, and `step` are
  for the error. Under `'raise'` the op fails with an InvalidArgumentError.

  Example:
    >>> values = [tf.constant([float('inf')]), tf.constant([1.0])]
    >>> bool(accepted('drop', values, ['v', 'w'], tf.constant(7)))
    False
  """
  finite = nonfinite.are_finite(values)
  result = tf.reduce_all(finite)
  if on_nonfinite == nonfinite.DROP:
    return result
  check = tf.debugging.Assert(
      result,
      [f'{cluster_task.from_environment().name}, at step', step,
       ': a NaN or an infinity in the update of',
       tf.boolean_mask(tf.constant(list(names)), tf.logical_not(finite)),
       'Lower the learning rate, clip the gradients, or pass '
       "on_nonfinite='drop'."], summarize=20)
  with tf.control_dependencies([] if check is None else [check]):
    return tf.identity(result)


class FiniteUpdates:
  """The finite updates of one worker, with a counter of its other updates.

  `num_nonfinite` counts the drops of this worker. It is None before the first
  update, and where nothing is dropped.
  """

  def __init__(self, on_nonfinite: str, name: str, device: str = ''):
    """Prepares updates on the worker's device, with a counter of that name."""
    self.on_nonfinite = on_nonfinite
    self.num_nonfinite: Optional[worker_variables.WorkerCounter] = None
    self._name = name
    self._device = device

  @property
  def is_asked(self) -> bool:
    """True if updates are checked."""
    return self.on_nonfinite != nonfinite.APPLY

  def apply(self, optimizer: tf1.train.Optimizer,
            grads_and_vars: types.GradsAndVars,
            global_step: Optional[tf.Variable], name: Optional[str],
            step: tf.Tensor, **kwargs: Any):
    """Runs `optimizer.apply_gradients` where the gradients are finite."""
    grads_and_vars = list(grads_and_vars)
    known = [(g, v) for g, v in grads_and_vars if g is not None]
    if not (self.is_asked and known):
      return optimizer.apply_gradients(
          grads_and_vars, global_step, name, **kwargs)
    return conditional_update.apply_gradients_if(
        self.accepted([g for g, _ in known], [v.name for _, v in known], step),
        optimizer, grads_and_vars, global_step, name,
        on_skip=self.count, **kwargs)

  def accepted(self, values: Sequence[nonfinite.Value], names: Sequence[str],
               step: tf.Tensor) -> tf.Tensor:
    """Returns the module's `accepted`; makes the counter, outside branches."""
    if self.num_nonfinite is None and self.on_nonfinite == nonfinite.DROP:
      self.num_nonfinite = worker_variables.WorkerCounter(
          self._name, self._device)
    return accepted(self.on_nonfinite, values, names, step)

  def summarize(self, tag: str) -> None:
    """Adds a summary of the dropped updates, if any, in a plain graph."""
    if not (self.num_nonfinite is None or tf.executing_eagerly() or
            tf.inside_function()):
      with tf1.control_dependencies(None):
        tf1.summary.scalar(tag, self.num_nonfinite.value())

  def count(self) -> list:
    """Returns the op that counts a drop, if drops are counted."""
    return [self.num_nonfinite.increment()] if self.num_nonfinite else []
