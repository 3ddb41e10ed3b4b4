# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Roles of variables under elastic averaging, and their creation."""

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


# Arguments that a copy takes over from its variable.
_TAKEN = ('trainable', 'collections', 'constraint', 'synchronization',
          'aggregation', 'distribute_strategy')


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
  """Returns whether a variable will be; true for a callable without a type."""
  dtype, value = kwargs.get('dtype'), kwargs.get('initial_value')
  if dtype is None and value is not None and not callable(value):
    dtype = getattr(value, 'dtype', None) or np.asarray(value).dtype
  return dtype is None or tf.as_dtype(dtype).base_dtype.is_floating


def localized(collections: Optional[Sequence[str]]) -> list[str]:
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


def copies_of(next_creator: Callable, kwargs: dict[str, Any],
              server: AbstractContextManager,
              create_copies: Callable[..., tf.Variable],
              ) -> tuple[tf.Variable, Optional[tf.Variable]]:
  """Makes a centre under the variable's name, and its copies.

  `create_copies` gets the creator of one copy, and its arguments, and makes one
  or several. Returns the copies and the centre. For a variable that turns out
  to be of a type without an average, returns the variable and None.
  """
  # Not in the body of a loop, which may make a variable: the copy starts from
  # the centre.
  with tf.init_scope():
    with server:
      center = center_of(next_creator, kwargs)
    if not center.dtype.is_floating:
      return center, None
    return create_copies(lambda **kwargs: local_copy.LocalCopy(center, **{
        name: kwargs[name] for name in _TAKEN if name in kwargs}),
                         **copy_arguments(kwargs)), center
