# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Handles, initialisers and parts of single variables."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

# A variable in parts of the parameter server strategy of v2; see `parts_of`.
from tensorflow.python.distribute import sharded_variable

# The store of `get_variable` and its key; see `copy_of_variable_store`.
from tensorflow.python.ops import variable_scope

# `tf.Variable(...)` runs the variable creators again; a creator that returns
# a variable of its own kind needs the class itself.
from tensorflow.python.ops.resource_variable_ops import (
  ResourceVariable as ResourceVariable,
)

tf1 = tf.compat.v1

VARIABLE_STORE_KEY = variable_scope._VARSTORE_KEY


def initialize_like(variable: tf.Variable, handle: tf.Tensor, initializer,
                    ) -> None:
  """Makes `variable` start from the value that `initializer` assigns.

  `handle` is a stand-in's handle, which the assignment may use instead of the
  handle of `variable`. A warm start replaces a variable's initialiser through a
  private attribute. If the variable stands in for another, the other must get
  it.
  """
  assignment = getattr(initializer, 'op', initializer)
  if assignment.inputs[0] is handle:
    with tf1.device(variable.device):
      assignment = tf.raw_ops.AssignVariableOp(
          resource=variable.handle, value=assignment.inputs[1])
  variable._initializer_op = assignment


def initialize_from(variable: tf.Variable, initializer) -> None:
  """Makes `variable` start from the value that `initializer` assigns.

  `initializer` is another variable's assignment, in a graph that is not
  finalized. A warm start also replaces an initialiser through the private
  attribute, as no public API does.
  """
  value = getattr(initializer, 'op', initializer).inputs[1]
  with tf1.device(variable.device), tf1.control_dependencies(None):
    variable._initializer_op = variable.assign(value, read_value=False)


def graph_element(variable: tf.Variable) -> tf.Tensor:
  """Returns the tensor that a fetch or a Saver uses for `variable`.

  `session.run(v)` and `tf.compat.v1.train.Saver` read it from a private
  attribute.
  """
  return variable._graph_element


def read_after(variable: tf.Variable, operation: tf.Operation):
  """Returns `operation` with the value after it, as an assignment does.

  The variable is read only if the value is used. Assignments do so privately.
  """
  return variable._lazy_read(operation)


def own_variable(variable: tf.Variable) -> tf.Variable:
  """Returns the variable that a strategy or a graph made.

  Under mixed precision Keras returns variables that cast another variable, held
  in a private field, when they are read. Their `ref()` differs.
  """
  # Not by `getattr`, for which a variable of several devices reads its value.
  inner = getattr(variable, '__dict__', {}).get('_variable')
  return own_variable(inner) if isinstance(inner, tf.Variable) else variable


def parts_of(variable) -> list:
  """Returns the variables that an optimizer sees of a variable.

  It may be partitioned, or a sharded variable of a parameter server strategy.
  No public API distinguishes these.
  """
  if isinstance(variable, sharded_variable.ShardedVariableMixin):
    return list(variable.variables)
  return [variable] if isinstance(variable, tf.Variable) else list(variable)


def copy_of_variable_store() -> Sequence[object]:
  """Returns a list of one: a copy of the graph's store of `get_variable`.

  No public API gives the store. With a copy, each tower can create variables
  with the names that another tower has used.
  """
  store = variable_scope._get_default_variable_store()
  new = variable_scope._VariableStore()
  new._vars.update(store._vars)
  new._partitioned_vars.update(store._partitioned_vars)
  return [new]


def is_constant_or_read(op: tf.Operation) -> bool:
  """Returns whether `op` makes a constant, or makes or reads a variable."""
  return op.type in ('Const', 'Identity', 'NoOp', 'ReadVariableOp',
                     'VarHandleOp', 'Variable', 'VariableV2')


def run_with_global_initializers(op: tf.Operation) -> None:
  """Adds `op` to the default `init_op` of a Scaffold without one.

  No public key names the collection that it adds to the initializers.
  """
  tf.compat.v1.add_to_collection('saved_model_initializers', op)
