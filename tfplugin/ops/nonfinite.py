# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Policies for an update that holds a NaN or an infinity.

  'apply'  it is applied as any other;
  'drop'   it changes nothing but a counter;
  'raise'  the step fails with an error that names worker, step and variables
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import tensorflow as tf

APPLY, DROP, RAISE = 'apply', 'drop', 'raise'
_POLICIES = (APPLY, DROP, RAISE)

# A checked value: a dense gradient, a sparse one, or a difference.
Value = Union[tf.Tensor, tf.IndexedSlices]


def check_policy(on_nonfinite: str) -> str:
  """Returns `on_nonfinite`; raises a ValueError unless it is a policy."""
  if on_nonfinite not in _POLICIES:
    raise ValueError(f'`on_nonfinite` must be one of {_POLICIES}. '
                     f"Received: {on_nonfinite!r}. Pass 'apply' for the "
                     'numbers of the bare optimizer.')
  return on_nonfinite


def are_finite(values: Sequence[Value]) -> tf.Tensor:
  """Returns a bool for each of `values`: whether it has no NaN or infinity.

  Example:
    >>> are_finite([tf.constant([1., float('nan')]), tf.constant(2.)]).numpy()
    array([False,  True])
  """
  return tf.stack([
      is_finite(v.values if isinstance(v, tf.IndexedSlices) else v)
      for v in values])


def is_finite(value: tf.Tensor) -> tf.Tensor:
  """Returns whether a tensor, maybe complex, has no NaN or infinity.

  Example:
    >>> bool(is_finite(tf.constant([1.0 + 2.0j])))
    True
  """
  value = tf.convert_to_tensor(value)
  if value.dtype.is_complex:
    return tf.logical_and(is_finite(tf.math.real(value)),
                          is_finite(tf.math.imag(value)))
  return tf.reduce_all(tf.math.is_finite(value))
