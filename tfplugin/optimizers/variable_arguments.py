# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the arguments of a variable creator say of the variable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from typing import Optional

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def is_trainable(kwargs: dict[str, Any]) -> bool:
  """What `trainable=None`, which tf.Variable hands on, means to TensorFlow.

  Args:
    kwargs: The creator's arguments.
  """
  trainable = kwargs.get('trainable')
  if trainable is None:
    return (kwargs.get('synchronization') !=
            tf.VariableSynchronization.ON_READ)
  return bool(trainable)


def is_floating(kwargs: dict[str, Any]) -> bool:
  """Whether a variable is going to be; a callable without a type: assumed.

  Args:
    kwargs: The creator's arguments.
  """
  dtype = kwargs.get('dtype')
  if dtype is None and not callable(kwargs.get('initial_value')):
    value = kwargs.get('initial_value')
    dtype = getattr(value, 'dtype', None) or np.asarray(value).dtype
  return dtype is None or tf.as_dtype(dtype).base_dtype.is_floating


def localized(collections: Optional[Iterable[str]]) -> list[str]:
  """Returns the collections of a variable that is neither saved nor shared.

  Args:
    collections: Those that it would be in otherwise.
  """
  if not collections:
    return [tf1.GraphKeys.LOCAL_VARIABLES]
  return [tf1.GraphKeys.LOCAL_VARIABLES
          if key == tf1.GraphKeys.GLOBAL_VARIABLES else key
          for key in collections]
