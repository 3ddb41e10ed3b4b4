# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Number of workers that train now, in a run that workers may join.

The number is in a table of the first parameter server. A table, unlike a
variable, needs no initialisation and is in no checkpoint, and its value changes
without a new graph. The chief alone changes it, in a session of its own.
"""

from __future__ import annotations

import tensorflow as tf

from tfplugin.distribute import placement

SERVER = '/job:ps/task:0'
_TABLE = 'tfplugin_num_workers'
_KEY = 'present'


def read(otherwise: int) -> tf.Tensor:
  """Returns the number, the chief included, as an int64 scalar.

  It is `otherwise` before the first number is written. Each run reads it anew.
  """
  with placement.only_on(SERVER):
    return tf.raw_ops.LookupTableFindV2(
        table_handle=_table(), keys=tf.constant(_KEY),
        default_value=tf.constant(otherwise, tf.int64))


def write(number: tf.Tensor) -> tf.Operation:
  """Returns the op that writes the number, on the current device."""
  return tf.raw_ops.LookupTableInsertV2(
      table_handle=_table(), keys=tf.constant(_KEY), values=number)


def _table() -> tf.Tensor:
  return tf.raw_ops.MutableHashTableV2(
      key_dtype=tf.string, value_dtype=tf.int64, shared_name=_TABLE)
