# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Roles of variables under elastic averaging, their creation, and copies."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph
from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

# Arguments that a copy takes over from its variable.
_TAKEN = ('trainable', 'collections', 'constraint', 'synchronization',
          'aggregation', 'distribute_strategy')
# The copies of a graph, by the names of their handles.
_copies = per_graph.PerGraph()


class Role(enum.Enum):
  """Role of a variable under elastic averaging."""

  ELASTIC = 'a local copy on the worker, a centre on the parameter server'
  SHARED = 'one variable on the parameter server'
  LOCAL = 'one variable on the worker, not in the checkpoint'
  STATE = 'optimizer state, on the worker'


def role_of(kwargs: dict[str, Any], statistics: str) -> Role:
  """Returns a variable's role, from the arguments of its creator.

  LOCAL: metric variables and everything else in LOCAL_VARIABLES. STATE: a
  variable that is colocated with another one, as an optimizer's slots are, and
  any other variable that an optimizer makes. SHARED: the global step, the sums
  of a Keras metric, types that have no average, and with `statistics='shared'`
  the model's non-trainable variables. ELASTIC: the rest.
  """
  if variable_arguments.is_global_step(kwargs):
    return Role.SHARED
  if variable_arguments.is_local(kwargs):
    return Role.LOCAL
  if (kwargs.get('colocate_with') is not None or
      _tf_internals.is_made_by_optimizer()):
    return Role.STATE
  if not _is_floating(kwargs) or variable_arguments.is_streaming(kwargs):
    return Role.SHARED
  if not variable_arguments.is_trainable(kwargs) and statistics == 'shared':
    return Role.SHARED
  return Role.ELASTIC


def _is_floating(kwargs: dict[str, Any]) -> bool:
  """Returns whether a variable will be; true for a callable without a type."""
  dtype, value = kwargs.get('dtype'), kwargs.get('initial_value')
  if dtype is None and value is not None and not callable(value):
    dtype = getattr(value, 'dtype', None) or np.asarray(value).dtype
  return dtype is None or tf.as_dtype(dtype).base_dtype.is_floating


def localized(collections: Sequence[str] | None) -> list[str]:
  """Returns `collections` for a variable that is not to be saved or shared."""
  return [tf1.GraphKeys.LOCAL_VARIABLES
          if key == tf1.GraphKeys.GLOBAL_VARIABLES else key
          for key in collections or [tf1.GraphKeys.GLOBAL_VARIABLES]]


def center_of(next_creator: Callable, kwargs: dict[str, Any]) -> tf.Variable:
  """Makes the centre of a variable, under the variable's own name."""
  return next_creator(**dict(kwargs, trainable=False, collections=[
      tf1.GraphKeys.GLOBAL_VARIABLES]))


def copy_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
  """Returns the arguments of the creator of a variable's copy."""
  return dict(kwargs, trainable=variable_arguments.is_trainable(kwargs),
              collections=localized(kwargs.get('collections')))


def note_copies(variable: tf.Variable, copies: Sequence[tf.Variable]) -> None:
  """Lets a `tf.custom_gradient` find `variable` by the handles of its copies.

  They are no global variables, among which TensorFlow searches in a graph.
  """
  if not tf1.executing_eagerly_outside_functions():
    _tf_internals.find_in_custom_gradients(
        lambda name: (_copies.here() or {}).get(name))
    _copies.here(dict).update((getattr(copy, 'handle', copy).op.name, variable)
                              for copy in copies)


class LocalCopy(_tf_internals.ResourceVariable):
  """A worker's copy that presents itself as its centre.

  Reading, differentiating and updating it use the copy. A `Saver` and a warm
  start use the centre, and its name is the centre's. So a checkpoint never
  holds one worker's copy by mistake. For the same reason `session.run(v)`
  returns the centre; fetch `v.value()` for the copy.
  """

  def __init__(self, center: tf.Variable, **kwargs):
    """Makes the copy; `kwargs` are of the creator of the variable."""
    self._center = None
    super().__init__(
        initial_value=center.read_value(),
        name=center.name.split(':')[0] + '/local_copy',
        **{name: kwargs[name] for name in _TAKEN if name in kwargs})
    self._center = center
    self._graph_element = _tf_internals.graph_element(center)

  @property
  def center(self) -> tf.Variable:
    """The variable of which this is a copy."""
    return self._center

  @property
  def name(self) -> str:
    """The centre's name."""
    return self._center.name if self._center is not None else super().name

  @property
  def op(self) -> tf.Operation:
    """The centre's op, after which optimizers name their slots."""
    return self._center.op

  @property
  def initial_value(self):
    """The centre's initial value, from which a moving average starts."""
    return self._center.initial_value

  def initialized_value(self):
    """Returns the centre's value, or its initial one before initialisation."""
    return self._center.initialized_value()

  @property
  def _initializer_op(self):
    return self._own_initializer

  @_initializer_op.setter
  def _initializer_op(self, op):
    # TensorFlow's warm start replaces the initialiser of a variable. The copy
    # still starts from the centre, and the centre from the checkpoint.
    if self._center is None or op is None:
      self._own_initializer = op
    else:
      _tf_internals.initialize_like(self._center, self.handle, op)

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    _tf_internals.set_save_slice_info(self._center, save_slice_info)

  def _gather_saveables_for_checkpoint(self):
    # For object-based checkpoints, such as those of Keras models.
    return _tf_internals.saveables_of_copies(
        (self._center,), self._center, self._center.op.name)

  def read_value_no_copy(self):
    """Raises a RuntimeError: only a Saver calls it, and would save the copy."""
    raise RuntimeError(
        'A Saver of a partitioned variable, or one with names of its own, must '
        f'be given centre variables. Received: the local copy {self.name!r}. '
        'Pass `tf.compat.v1.global_variables()` to the Saver instead of the '
        'trainable variables.')
