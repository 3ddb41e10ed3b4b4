# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Handles, initialisers, parts, copies and arguments of variables."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

# Tells a variable of a strategy; its class is private.
from tensorflow.python.distribute import distribute_utils

# A variable in parts of the parameter server strategy of v2; see `parts_of`.
from tensorflow.python.distribute import sharded_variable

# Finds the variables of a `tf.custom_gradient`; see `find_in_custom_gradients`.
from tensorflow.python.ops import custom_gradient

# The store of `get_variable` and its key; see `copy_of_variable_store`.
from tensorflow.python.ops import variable_scope

# `tf.Variable(...)` runs the variable creators again; a creator that returns
# a variable of its own kind needs the class itself.
from tensorflow.python.ops.resource_variable_ops import (
  ResourceVariable as ResourceVariable,
)

from tfplugin._tf_internals import replacing
from tfplugin._tf_internals import saving
from tfplugin._tf_internals import strategies

tf1 = tf.compat.v1

VARIABLE_STORE_KEY = variable_scope._VARSTORE_KEY


def initialize_from(variable: tf.Variable, initializer) -> None:
  """Makes `variable` start from the value that `initializer` assigns.

  `initializer` is, or waits for, another variable's assignment. The graph is
  not finalized.
  """
  waited_for = [getattr(initializer, 'op', initializer)]
  for op in waited_for:
    if op.type in ('Assign', 'AssignVariableOp'):
      break
    waited_for += [*op.control_inputs, *(x.op for x in op.inputs)]
  else:
    raise ValueError(
        f'The initialiser of {variable.name!r} must assign a value. Received: '
        f'{initializer!r}.')
  initialize_with(variable, op.inputs[1])


def initialize_with(variable: tf.Variable, value: tf.Tensor) -> None:
  """Makes `variable` start from `value`; the graph is not finalized.

  Its `initial_value`, from which optimizer state may start, is then `value`.
  """
  variable._initial_value = value
  with tf1.device(variable.device), tf1.control_dependencies(None):
    variable._initializer_op = (
        variable.assign(value, read_value=False)
        if variable.dtype != variable.dtype.base_dtype else
        # A server may hold a variable of this name and of another shape.
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value))


def graph_element(variable: tf.Variable) -> tf.Tensor:
  """Returns the tensor that a fetch or a Saver uses for `variable`."""
  return variable._graph_element


def read_after(variable: tf.Variable, operation: tf.Operation):
  """Returns `operation` with the value after it, read only if it is used."""
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
  """Returns the variables that an optimizer sees of a variable: its parts."""
  if isinstance(variable, sharded_variable.ShardedVariableMixin):
    return list(variable.variables)
  return [variable] if isinstance(variable, tf.Variable) else list(variable)


def copy_of_variable_store() -> Sequence[object]:
  """Returns a list of one: a copy of the graph's store of `get_variable`.

  With a copy, each tower can create variables with another tower's names.
  """
  store = variable_scope._get_default_variable_store()
  new = variable_scope._VariableStore()
  new._vars.update(store._vars)
  new._partitioned_vars.update(store._partitioned_vars)
  return [new]


def find_in_custom_gradients(
    find: Callable[[str], tf.Variable | None]) -> None:
  """Makes a `tf.custom_gradient` in a graph find variables by `find`, too.

  TensorFlow searches among the global variables alone, by the names of handles.
  It raises an error for the handle of any other variable, such as a worker's
  copy. `find` returns None for other handles; the first one given stays.
  """
  def make(original):
    def variable_of(name):
      variable = find(name)
      if variable is None:
        return original(name)
      return variable if variable.trainable else None
    return variable_of

  replacing.stay_replaced(custom_gradient, get_variable_by_name=make)


def is_constant_or_read(op: tf.Operation) -> bool:
  """Returns whether `op` makes a constant, or makes or reads a variable."""
  return op.type in ('Const', 'Identity', 'NoOp', 'ReadVariableOp',
                     'VarHandleOp', 'Variable', 'VariableV2')


class OneCopyExtended(strategies.MirroredExtended):
  """MirroredExtended with one copy of each variable for all devices.

  The public strategy has a copy for each, and refuses a device named twice.
  """

  def __init__(self, strategy, devices: Sequence[str], variable_device: str,
               cross_device_ops: tf.distribute.CrossDeviceOps):
    """Takes `devices` as ops are placed: without a job."""
    self._variable_device = variable_device
    super().__init__(strategy, devices, cross_device_ops)

  def _initialize_strategy(self, devices):
    self._devices = tuple(devices)

  def _create_variable(self, next_creator, **kwargs):
    beside = kwargs.get('colocate_with')
    if not distribute_utils.is_distributed_variable(beside):
      kwargs['colocate_with'] = types.SimpleNamespace(_devices=(
          self._variable_device if beside is None else beside.device,))
    return super()._create_variable(next_creator, **kwargs)

  def non_slot_devices(self, var_list):
    """Returns the device of variables, once."""
    del var_list
    return (self._variable_device,)


_FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA


def _scattering(method: str) -> Callable:
  """Returns a method that scatters once, with the values of one replica."""
  def scatter(self, *args, **kwargs):
    if self.aggregation != _FIRST:
      raise ValueError(
          f'`{method}` of a variable in shards must have the aggregation '
          f'ONLY_FIRST_REPLICA. Received: `{self.name}` with '
          f'{self.aggregation}. Make the variable with that one, or use '
          '`scatter_add`.')
    if not method.startswith('scatter_nd'):
      return getattr(super(OneCopy, self), method)(*args, **kwargs)
    named = {**dict(zip(('indices', 'updates'), args)), **kwargs}
    return self._update(
        lambda copy, values: getattr(copy, method)(named['indices'], values),
        named['updates'])

  scatter.__name__ = method
  scatter.__doc__ = f'See `tf.Variable.{method}`; once for all shards.'
  return scatter


class OneCopy:
  """Mixin before a mirrored variable with one copy for all replicas."""

  for _name in ('scatter_update', 'scatter_max', 'scatter_min', 'scatter_mul',
                'scatter_div', 'scatter_nd_add', 'scatter_nd_sub',
                'scatter_nd_update', 'scatter_nd_max', 'scatter_nd_min'):
    vars()[_name] = _scattering(_name)
  del _name

  @property
  def handle(self):
    """See `tf.Variable.handle`."""
    return self._primary.handle

  @property
  def initializer(self):
    """The initialiser of the copy, or of a warm start."""
    own = self._initializer_op
    return self._primary.initializer if own is None else own

  def _get_replica(self, replica_id):
    del replica_id
    return self._primary


def use_one_copy(variable: tf.Variable) -> None:
  """Makes all replicas use the only copy of a `OneCopyExtended`'s variable."""
  saving.mix_in(variable, OneCopy)


def is_trainable(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments ask for a trainable variable.

  `tf.Variable` passes `trainable=None` on. Then a variable is trainable unless
  it is synchronised on reading, which is TensorFlow's own rule.
  """
  trainable = kwargs.get('trainable')
  if trainable is None:
    return (kwargs.get('synchronization') !=
            tf.VariableSynchronization.ON_READ)
  return bool(trainable)


def is_metric(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments are for a metric."""
  collections = kwargs.get('collections') or ()
  return tf1.GraphKeys.METRIC_VARIABLES in collections or _is_sum(kwargs)


def is_streaming(kwargs: dict[str, Any]) -> bool:
  """Returns whether the arguments are for a metric, or for a local variable."""
  return is_local(kwargs) or _is_sum(kwargs)


def is_local(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments ask for a local variable."""
  collections = kwargs.get('collections') or ()
  return (tf1.GraphKeys.LOCAL_VARIABLES in collections or
          tf1.GraphKeys.METRIC_VARIABLES in collections)


def is_global_step(kwargs: dict[str, Any]) -> bool:
  """Returns whether a creator's arguments ask for the global step."""
  return tf1.GraphKeys.GLOBAL_STEP in (kwargs.get('collections') or ())


def _is_sum(kwargs: dict[str, Any]) -> bool:
  """Returns whether replicas add to the variable, as to a metric of Keras."""
  return (kwargs.get('synchronization') == tf.VariableSynchronization.ON_READ
          and kwargs.get('aggregation') in (tf.VariableAggregation.SUM,
                                            tf1.VariableAggregation.SUM))
