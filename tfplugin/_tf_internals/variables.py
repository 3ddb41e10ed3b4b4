# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The handles, initialisers and parts of single variables."""

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

  A warm start replaces a variable's initialiser through a private attribute;
  where one variable stands in for another, it must reach the other.

  Args:
    variable: The variable to initialise.
    handle: The handle that `initializer` may assign to in its place.
    initializer: The assignment that TensorFlow made.
  """
  assignment = getattr(initializer, 'op', initializer)
  if assignment.inputs[0] is handle:
    with tf1.device(variable.device):
      assignment = tf.raw_ops.AssignVariableOp(
          resource=variable.handle, value=assignment.inputs[1])
  variable._initializer_op = assignment


def initialize_from(variable: tf.Variable, initializer) -> None:
  """Makes `variable` start from the value that `initializer` assigns.

  A warm start, too, replaces the initialiser of a variable through a private
  attribute: there is no public way.

  Args:
    variable: A variable made in a graph that is not finalized.
    initializer: The assignment that initialises another variable.
  """
  value = getattr(initializer, 'op', initializer).inputs[1]
  with tf1.device(variable.device), tf1.control_dependencies(None):
    variable._initializer_op = variable.assign(value, read_value=False)


def graph_element(variable: tf.Variable) -> tf.Tensor:
  """The tensor that a fetch or a Saver takes for `variable`.

  `session.run(v)` and `tf.compat.v1.train.Saver` look it up privately.

  Args:
    variable: A variable made in a graph.
  """
  return variable._graph_element


def read_after(variable: tf.Variable, operation: tf.Operation):
  """Returns `operation` with the value after it, as an assignment does.

  Nothing is read unless the value is used. Assignments make it privately.

  Args:
    variable: A resource variable made in a graph.
    operation: An op that assigns to it.
  """
  return variable._lazy_read(operation)


def own_variable(variable: tf.Variable) -> tf.Variable:
  """Returns the variable that a strategy or a graph made.

  Under mixed precision Keras hands out variables that cast another one when
  they are read, and keep it in a private field. Their `ref()` is another.

  Args:
    variable: Any variable, cast or not.
  """
  # Not by `getattr`, for which a variable of several devices reads its value.
  inner = getattr(variable, '__dict__', {}).get('_variable')
  return own_variable(inner) if isinstance(inner, tf.Variable) else variable


def parts_of(variable) -> list:
  """Returns the variables that an optimizer sees of a variable.

  Args:
    variable: A variable, partitioned or not, or a parameter server strategy's
      sharded variable. No public API tells them apart.
  """
  if isinstance(variable, sharded_variable.ShardedVariableMixin):
    return list(variable.variables)
  return [variable] if isinstance(variable, tf.Variable) else list(variable)


def copy_of_variable_store() -> Sequence[object]:
  """Returns a list of one: a copy of the graph's store of `get_variable`.

  The store has no public handle; with a copy of its own, each tower may create
  the variables that another tower has created already.
  """
  store = variable_scope._get_default_variable_store()
  new = variable_scope._VariableStore()
  new._vars.update(store._vars)
  new._partitioned_vars.update(store._partitioned_vars)
  return [new]


def is_constant_or_read(op: tf.Operation) -> bool:
  """Whether `op` makes a constant, a variable, or the value of a variable.

  Args:
    op: An operation of a graph.
  """
  return op.type in ('Const', 'Identity', 'NoOp', 'ReadVariableOp',
                     'VarHandleOp', 'Variable', 'VariableV2')


def run_with_global_initializers(op: tf.Operation) -> None:
  """Lets a Scaffold without an `init_op` run `op` with its default one.

  No public key names the collection that it adds to the initializers.

  Args:
    op: An operation of the graph that is being built.
  """
  tf.compat.v1.add_to_collection('saved_model_initializers', op)
