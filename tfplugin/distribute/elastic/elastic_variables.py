# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which variables are averaged, and where each kind of variable is made."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.elastic import local_copy
from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

# Old graphs hold these names.
LOCAL_CENTER = 'local_center_variable'
LOCAL_STEP = 'local_step'


class Role(enum.Enum):
  """What a variable is under elastic averaging."""

  ELASTIC = 'a local copy on the worker, a centre on the parameter server'
  SHARED = 'one variable on the parameter server'
  LOCAL = 'one variable on the worker, not in the checkpoint'
  STATE = 'optimizer state, on the worker'


def role_of(kwargs: dict[str, Any], statistics: str) -> Role:
  """Decides where a variable lives, from the arguments of its creator.

  Args:
    kwargs: The arguments of the variable creator.
    statistics: `'average'` or `'shared'`: the role of the non-trainable
      floating point variables of the model.

  Returns:
    LOCAL for metric variables and everything else in LOCAL_VARIABLES; STATE
    for a variable that is colocated with another one, as an optimizer's slots
    are, and for any other that an optimizer makes; SHARED for the global step,
    for what a Keras metric adds up, and for types that have no average; ELASTIC
    for the rest.
  """
  if parameter_server_base.is_global_step(kwargs):
    return Role.SHARED
  if parameter_server_base.is_local(kwargs):
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
  """Whether a variable is going to be; a callable without a type: assumed."""
  dtype, value = kwargs.get('dtype'), kwargs.get('initial_value')
  if dtype is None and value is not None and not callable(value):
    dtype = getattr(value, 'dtype', None) or np.asarray(value).dtype
  return dtype is None or tf.as_dtype(dtype).base_dtype.is_floating


def localized(collections: Optional[Sequence[str]]) -> list[str]:
  """Returns the collections of a variable that is not to be saved or shared.

  Args:
    collections: The collections that were asked for, or None.
  """
  return [tf1.GraphKeys.LOCAL_VARIABLES
          if key == tf1.GraphKeys.GLOBAL_VARIABLES else key
          for key in collections or [tf1.GraphKeys.GLOBAL_VARIABLES]]


def local_variable(initial_value: tf.Tensor, name: str,
                   is_reference: bool = False) -> tf.Variable:
  """A variable of one worker, neither saved nor shared nor averaged.

  Args:
    initial_value: Its value at each start of a session.
    name: Its full name; no scope is put before it.
    is_reference: Whether it is assigned the value of a reference variable,
      with which a resource variable would share its buffer.
  """
  create = (functools.partial(tf1.Variable, use_resource=False) if is_reference
            else _tf_internals.ResourceVariable)
  with tf1.name_scope(None):
    return create(
        initial_value=initial_value,
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES],
        name=name)


def center_of(next_creator: Callable, kwargs: dict[str, Any]) -> tf.Variable:
  """Makes the centre of a variable, under the variable's own name.

  Args:
    next_creator: The next variable creator.
    kwargs: The arguments of this one.
  """
  return next_creator(**dict(kwargs, trainable=False, collections=[
      tf1.GraphKeys.GLOBAL_VARIABLES]))


def copy_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
  """Returns the arguments of the creator of a variable's copy.

  Args:
    kwargs: The arguments of the variable creator.
  """
  return dict(kwargs, trainable=variable_arguments.is_trainable(kwargs),
              collections=localized(kwargs.get('collections')))


def copy_of(center: tf.Variable, kwargs: dict[str, Any],
            ) -> local_copy.LocalCopy:
  """Makes the copy of a centre, here.

  Args:
    center: The variable on the parameter server.
    kwargs: What `copy_arguments` returned.
  """
  taken = ('trainable', 'collections', 'constraint', 'synchronization',
           'aggregation', 'distribute_strategy')
  return local_copy.LocalCopy(
      center, **{name: kwargs[name] for name in taken if name in kwargs})
