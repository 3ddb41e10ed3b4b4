# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of a variable that are built once for all variables of a shape.

A condition with two branches takes milliseconds to build. A graph with many
variables has it once for each shape, and one call for each variable.
TensorFlow replaces the calls by their ops before it runs the graph.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import per_graph

_functions = per_graph.PerGraph()


def call(key: Hashable, fn: Callable[..., tuple[tf.Tensor, ...]],
         variable: tf.Variable,
         *inputs: Optional[tf.Tensor]) -> tuple[tf.Tensor, ...]:
  """Returns `fn(variable, *inputs)`, tensors, beside `variable`.

  `fn` is the same function wherever `key` is equal. It uses no other tensors
  than its arguments and its results. Its writes happen before its results are
  there. Reference variables, which a function cannot write, eager execution,
  functions of users and XLA have the ops themselves.

  Example:
    >>> v = tf.Variable([1.0, 2.0])
    >>> float(call('sum', lambda v: (tf.reduce_sum(v),), v)[0])
    3.0
  """
  with tf.init_scope():
    is_eager = tf.executing_eagerly()
  with _tf_internals.colocate_with(variable):
    if (is_eager or branching.is_reference(variable) or
        _tf_internals.is_compiled()):
      return fn(variable, *inputs)
    functions = _functions.here(dict)
    if key not in functions:
      functions[key] = tf.function(fn, autograph=False)
    # TensorFlow builds a function again for other devices.
    with tf.device(None), _tf_internals.colocate_with(
        None, ignore_existing=True):
      concrete = functions[key].get_concrete_function(variable, *inputs)
    # Consumers wait for results, as the call counts as run before its ops have.
    return tuple(map(tf.identity, concrete(variable, *inputs)))
