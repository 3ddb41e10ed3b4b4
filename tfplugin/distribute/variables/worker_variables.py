# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables and counters of one worker, which wrappers add for themselves."""

from __future__ import annotations

import functools
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement

tf1 = tf.compat.v1


def create(make_value: Callable[[], Any], name: str, device: str,
           is_reference: bool = False,
           is_listed: bool | None = True,
           variable_class: type = _tf_internals.ResourceVariable
          ) -> tf.Variable:
  """Makes a variable of one worker, neither trained nor saved nor shared.

  It belongs to the graph around functions and branches. The creators of
  strategies and scopes do not affect it. `make_value` returns its value at each
  start of a session. `name` is its full name, without outer scopes. `device`
  holds regardless of outer scopes and setters; empty means the session's own.

  `is_reference` is for a variable that is assigned the value of a reference
  variable. A resource variable would share its buffer. `is_listed` puts it
  among the local variables. With False it starts beside them; with None its
  maker starts it.
  """
  make = (functools.partial(tf1.Variable, use_resource=False) if is_reference
          else variable_class)
  with tf.init_scope(), tf1.name_scope(None), placement.only_on(device):
    value = make_value()
    variable = make(
        initial_value=(value if is_listed else
                       tf.zeros(value.shape, value.dtype)),
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES] if is_listed else [],
        name=name)
    if not is_listed:
      # TensorFlow copies the ops of an `initial_value`: conditions break.
      _tf_internals.initialize_with(variable, value)
    if is_listed is False:
      per_graph.current().unlisted.append(variable)
      # These initializers run wherever local variables are initialised.
      tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                            variable.initializer)
    return variable


class _Counter(_tf_internals.ResourceVariable):
  """A variable that is ready before it has a value."""

  def is_initialized(self, name: str | None = None) -> tf.Tensor:
    """Returns true, so that no session waits for the initializer."""
    return tf.ones([], tf.bool, name)

  def has_value(self) -> tf.Tensor:
    """Returns whether there is a value, as a bool scalar."""
    return super().is_initialized()


class WorkerCounter:
  """An `int64` local variable that starts at 0 and counts events of a worker.

  The variable is not in checkpoints. A counter that is not initialised counts
  as 0. So it is ready also in a session that ran only the global initialiser,
  or a `local_init_op` made before the counter.

  Variables created:
    <name>: int64, [], local; on the worker.
  """

  def __init__(self, name: str, device: str = ''):
    """Creates the variable under its full name, on the worker's `device`."""
    self.variable = create(
        lambda: tf.zeros([], tf.int64), name, device, variable_class=_Counter)

  def increment(self, where: tf.Tensor | None = None) -> tf.Operation:
    """Returns an op that adds 1, unless the bool scalar `where` is false."""
    added = 1 if where is None else tf.cast(where, tf.int64)
    return self.variable.assign(self.value() + added)

  def value(self) -> tf.Tensor:
    """Returns the count as an `int64` scalar."""
    return tf.cond(self.variable.has_value(), self.variable.read_value,
                   lambda: tf.zeros([], tf.int64))
