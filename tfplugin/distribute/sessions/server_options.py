# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of a RunConfig that apply to a task's server, too."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

tf1 = tf.compat.v1

# Without the device filters: the server would add them to the filters of every
# session, which would then wait for tasks that have ended.
_FIELDS = ('device_count', 'gpu_options', 'inter_op_parallelism_threads',
           'intra_op_parallelism_threads', 'rpc_options',
           'session_inter_op_thread_pool', 'use_per_session_threads')


def of_session(session_config: Optional[tf1.ConfigProto]) -> tf1.ConfigProto:
  """Returns the settings of a server: threads, devices and rpc options.

  `session_config` is the RunConfig's, or None. TensorFlow itself passes only
  the options of GPUs to the server.
  """
  options = tf1.ConfigProto()
  if session_config is not None:
    options.CopyFrom(session_config)
    for field, _ in options.ListFields():
      if field.name not in _FIELDS:
        options.ClearField(field.name)
  return options
