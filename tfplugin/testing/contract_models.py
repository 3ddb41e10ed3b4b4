# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model of the optimizer contract: one variable per kind of gradient."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

# Every kind of gradient an optimizer may get, as the name of the variable.
GRADIENT_KINDS = ('dense', 'float16', 'float64', 'sparse', 'repeated_ids',
                  'partitioned', 'partitioned_sparse')


@dataclasses.dataclass(frozen=True)
class Model:
  """A loss and the variables it depends on.

  `loss` is a float32 scalar. `variables` are trainable; the parts of a
  partitioned variable are listed one by one.
  """

  loss: tf.Tensor
  variables: Sequence[tf.Variable]


def build() -> Model:
  """Builds a loss over one variable of each of `GRADIENT_KINDS`.

  The variables' names begin with their kinds.
  """
  first = len(tf1.trainable_variables())
  losses = [
      _square(_variable('dense', [2, 3])),
      _square(_variable('float16', [3], tf.float16)),
      _square(_variable('float64', [2, 2], tf.float64)),
      _square(tf1.nn.embedding_lookup(
          _variable('sparse', [6, 2]), [4, 1])),
      _square(tf1.nn.embedding_lookup(
          _variable('repeated_ids', [6, 2]), [2, 5, 2, 2])),
      _square(tf.convert_to_tensor(_variable('partitioned', [5, 2], parts=2))),
      _square(tf1.nn.embedding_lookup(
          _variable('partitioned_sparse', [6, 2], parts=2), [3, 0, 3],
          partition_strategy='div')),
  ]
  return Model(tf.add_n(losses), tf1.trainable_variables()[first:])


def _variable(name: str, shape: Sequence[int], dtype=tf.float32,
              parts: int = 1):
  """Returns a variable that starts from evenly spaced values."""
  values = np.linspace(-1.0, 2.0, int(np.prod(shape))).reshape(shape)

  def initializer(shape, dtype=None, partition_info=None):
    begin = partition_info.var_offset[0] if partition_info else 0
    return tf.constant(values[begin:begin + shape[0]], dtype)

  return tf1.get_variable(
      name, shape, dtype, initializer=initializer,
      partitioner=tf1.fixed_size_partitioner(parts) if parts > 1 else None)


def _square(x: tf.Tensor) -> tf.Tensor:
  return tf.cast(tf.reduce_sum(tf.square(x)), tf.float32)
