# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which variables are averaged, and where each kind of variable is made."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import AbstractContextManager
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


# What a copy takes from the arguments of its variable.
_TAKEN = ('trainable', 'collections', 'constraint', 'synchronization',
          'aggregation', 'distribute_strategy')


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


def copies_of(next_creator: Callable, kwargs: dict[str, Any],
              server: AbstractContextManager,
              create_copies: Callable[..., tf.Variable],
              ) -> tuple[tf.Variable, Optional[tf.Variable]]:
  """Makes a centre under the variable's name, and what models compute with.

  Args:
    next_creator: The next variable creator.
    kwargs: The arguments of this one.
    server: Where the centre is to be.
    create_copies: Gets the creator of one copy, and its arguments; makes one or
      several.

  Returns:
    The copies and the centre; a variable that turns out to be of a type without
    an average, and None.
  """
  # The body of a loop may make a variable; the copy starts from the centre.
  with tf.init_scope():
    with server:
      center = center_of(next_creator, kwargs)
    if not center.dtype.is_floating:
      return center, None
    return create_copies(lambda **kwargs: local_copy.LocalCopy(center, **{
        name: kwargs[name] for name in _TAKEN if name in kwargs}),
                         **copy_arguments(kwargs)), center
