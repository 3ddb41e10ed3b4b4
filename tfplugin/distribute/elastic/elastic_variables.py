# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The two halves of an elastically averaged variable: local copy and centre."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

is_trainable = variable_arguments.is_trainable


class Role(enum.Enum):
  """What a variable is to an elastic strategy."""

  ELASTIC = 'a local copy on the worker, a centre on the parameter server'
  SHARED = 'one variable on the parameter server'
  LOCAL = 'one variable on the worker, not in the checkpoint'
  STATE = 'optimizer state, on the worker'


@dataclasses.dataclass(frozen=True)
class ElasticPair:
  """One averaged variable.

  Attributes:
    local: The copy that the model computes with.
    center: What is averaged, saved and served.
    local_center: The worker's last view of the centre, which the exploration
      penalty pulls to; None where there is no penalty.
    trainable: Whether the variable is trained, and not a statistic.
  """

  local: tf.Variable
  center: tf.Variable
  local_center: Optional[tf.Variable]
  trainable: bool


def role_of(kwargs: dict[str, Any], statistics: str) -> Role:
  """Decides where a variable lives, from the arguments of its creator.

  Args:
    kwargs: What the variable creator was called with.
    statistics: `'average'` or `'shared'`: what becomes of the non-trainable
      floating point variables of the model.

  Returns:
    LOCAL for metric variables and everything else in LOCAL_VARIABLES; STATE
    for what is colocated with another variable, which is what an optimizer
    does with its slots; SHARED for the global step and for types that have no
    average; ELASTIC for the rest.
  """
  if parameter_server_base.is_global_step(kwargs):
    return Role.SHARED
  if parameter_server_base.is_local(kwargs):
    return Role.LOCAL
  if kwargs.get('colocate_with') is not None:
    return Role.STATE
  dtype = kwargs.get('dtype')
  if dtype is not None and not tf.as_dtype(dtype).is_floating:
    return Role.SHARED
  if not is_trainable(kwargs) and statistics == 'shared':
    return Role.SHARED
  return Role.ELASTIC


def localized(collections: Optional[Sequence[str]]) -> list[str]:
  """Returns the collections of a variable that is not to be saved or shared.

  Args:
    collections: Those that were asked for, or None.
  """
  return [tf1.GraphKeys.LOCAL_VARIABLES
          if key == tf1.GraphKeys.GLOBAL_VARIABLES else key
          for key in collections or [tf1.GraphKeys.GLOBAL_VARIABLES]]


def copy_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
  """The arguments of a variable creator that a local copy takes over.

  Args:
    kwargs: What the variable creator was called with.
  """
  taken = ('trainable', 'collections', 'constraint', 'synchronization',
           'aggregation', 'distribute_strategy')
  return {name: kwargs[name] for name in taken if name in kwargs}


def local_variable(initial_value: tf.Tensor, name: str) -> tf.Variable:
  """A variable of one worker, neither saved nor shared nor averaged.

  Args:
    initial_value: What it starts from, each time that a session starts.
    name: Its name.
  """
  return _tf_internals.ResourceVariable(
      initial_value=initial_value,
      trainable=False,
      collections=[tf1.GraphKeys.LOCAL_VARIABLES],
      name=name)


class LocalCopy(_tf_internals.ResourceVariable):
  """A worker's copy of a centre variable, which it stands in for.

  Reading, differentiating and updating it touch the copy. Its name, what a
  `Saver` stores for it and what a warm start initialises are the centre's, so
  that a checkpoint never holds one worker's copy in silence. For the same
  reason a fetch of the variable itself, `session.run(v)`, gives the centre;
  fetch `v.value()` for the copy.
  """

  def __init__(self, center: tf.Variable, **kwargs):
    """Creates the copy, initialised from the centre.

    Args:
      center: The variable on the parameter server.
      **kwargs: As `tf.Variable` takes them, without a name or initial value.
    """
    self._center = None
    super().__init__(
        initial_value=center.read_value(),
        name=center.op.name + '/local_copy',
        **kwargs)
    self._center = center
    self._graph_element = _tf_internals.graph_element(center)

  @property
  def center(self) -> tf.Variable:
    """The variable that this is the copy of."""
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
    """The centre's: it can be read before there is a centre.

    A moving average starts from it.
    """
    return self._center.initial_value

  def initialized_value(self):
    """The centre's value, or its initial one before it is initialised."""
    return self._center.initialized_value()

  @property
  def _initializer_op(self):
    return self._own_initializer

  @_initializer_op.setter
  def _initializer_op(self, op):
    # TensorFlow's warm start replaces the initialiser of a variable. The copy
    # is then to start from the centre as ever, and the centre from there.
    if self._center is None:
      self._own_initializer = op
    else:
      _tf_internals.initialize_like(self._center, self.handle, op)

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    _tf_internals.set_save_slice_info(self._center, save_slice_info)

  def _gather_saveables_for_checkpoint(self):
    # What checkpoints of objects store, such as those of Keras models.

    def saveable(name=''):
      return _tf_internals.CopiesSaveable(
          (self._center,), self._center, name or self._center.op.name)

    return {'VARIABLE_VALUE': saveable}

  def read_value_no_copy(self):
    """Raises: only a Saver calls it, which would store this very copy.

    Raises:
      RuntimeError: Always.
    """
    raise RuntimeError(
        'A Saver of a partitioned variable, or one with names of its own, must '
        f'be given centre variables. Received: the local copy {self.name!r}. '
        'Pass `tf.compat.v1.global_variables()` to the Saver instead of the '
        'trainable variables.')
