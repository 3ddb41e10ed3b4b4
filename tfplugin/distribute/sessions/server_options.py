# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of a RunConfig that hold for a task's server, too."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

tf1 = tf.compat.v1

# Not the whole of it: the server would add the device filters to those of every
# session, which would then wait for tasks that have ended.
_FIELDS = ('device_count', 'gpu_options', 'inter_op_parallelism_threads',
           'intra_op_parallelism_threads', 'rpc_options',
           'session_inter_op_thread_pool', 'use_per_session_threads')


def of_session(session_config: Optional[tf1.ConfigProto]) -> tf1.ConfigProto:
  """Returns the settings of a server: threads, devices and rpc options.

  TensorFlow hands on the options of GPUs alone.

  Args:
    session_config: That of the RunConfig, or None.
  """
  options = tf1.ConfigProto()
  if session_config is not None:
    options.CopyFrom(session_config)
    for field, _ in options.ListFields():
      if field.name not in _FIELDS:
        options.ClearField(field.name)
  return options
