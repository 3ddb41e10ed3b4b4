# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check that the variables of a graph are finite, on their own devices."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence

import tensorflow as tf

tf1 = tf.compat.v1


class FiniteState:
  """The ops that check every variable on its own device.

  Each device reduces its variables to one vector of flags. Only the flags
  travel.
  """

  def __init__(self, variables: Sequence[tf.Variable]):
    """Adds the ops to the current graph; integer variables are left out."""
    by_device = collections.defaultdict(list)
    for variable in itertools.chain.from_iterable(map(_copies, variables)):
      if variable.dtype.base_dtype.is_floating or (
          variable.dtype.base_dtype.is_complex):
        by_device[variable.device].append(variable)
    self._names = [v.op.name for group in by_device.values() for v in group]
    with tf1.control_dependencies(None), tf1.name_scope('finite_state'):
      self._flags = [_flags(device, group)
                     for device, group in by_device.items()]

  def not_finite(self, session: tf1.Session) -> list[str]:
    """Returns the names of the variables that hold a NaN or an infinity."""
    flags = [flag for group in session.run(self._flags) for flag in group]
    return [name for name, is_finite in zip(self._names, flags)
            if not is_finite]


def _copies(variable: tf.Variable) -> Sequence[tf.Variable]:
  """Returns the copies of a distributed variable, on several devices."""
  if isinstance(variable, tf.distribute.DistributedValues):
    return variable.values
  return [variable]


def _flags(device: str, variables: Sequence[tf.Variable]) -> tf.Tensor:
  """Returns whether each of the variables, all on one device, is finite."""
  flags = []
  for variable in variables:
    with tf1.device(device), tf1.colocate_with(variable, ignore_existing=True):
      flags.append(_is_finite(variable.read_value()))
  with tf1.device(device):
    return tf.stack(flags)


def _is_finite(value: tf.Tensor) -> tf.Tensor:
  parts = ([tf.math.real(value), tf.math.imag(value)]
           if value.dtype.is_complex else [value])
  return tf.reduce_all([tf.reduce_all(tf.math.is_finite(part))
                        for part in parts])
