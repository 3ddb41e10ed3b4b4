# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of a RunConfig for a task's server, and filters of its sessions.

TensorFlow makes a session wait for every task that its device filters allow. A
RunConfig has filters for the parameter servers and the task itself, unless the
program passes a `session_config`. Then a session, e.g. of a chief that
restarts, would wait without end for a worker that has finished.
"""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task

tf1 = tf.compat.v1

# Without the device filters: the server would add them to the filters of every
# session, which would then wait for tasks that have ended.
_FIELDS = ('device_count', 'gpu_options', 'inter_op_parallelism_threads',
           'intra_op_parallelism_threads', 'rpc_options',
           'session_inter_op_thread_pool', 'use_per_session_threads')


# By these a program sets the same before a strategy starts the server.
_THREADS = {
    'inter_op_parallelism_threads': (
        tf.config.threading.get_inter_op_parallelism_threads),
    'intra_op_parallelism_threads': (
        tf.config.threading.get_intra_op_parallelism_threads),
}


def of_run(config: tf.estimator.RunConfig) -> tf1.ConfigProto:
  """Returns the settings of a server; warns of settings that come too late.

  In eager mode a strategy of several synchronous processes starts the server
  when it is made, before there is a RunConfig.
  """
  options = of_session(config.session_config)
  if _tf_internals.has_started_server(config.train_distribute):
    late = [(field.name, value) for field, value in options.ListFields()
            # Of the devices that the strategy has found.
            if field.name not in ('device_count', 'gpu_options') and
            _THREADS.get(field.name, lambda: None)() != value]
    if late:
      tf1.logging.warning(
          '`session_config` of the RunConfig comes too late for the server of '
          'this task, which the strategy has started. Received: %s. Call `tf.'
          'compat.v1.disable_eager_execution()` at the start of the program: '
          'then the server starts later, with all settings. Or set the numbers '
          'of threads by `tf.config.threading` before you create the strategy.',
          ', '.join(f'{name}={" ".join(str(value).split())}'
                    for name, value in late))
  return options


def of_session(session_config: tf1.ConfigProto | None) -> tf1.ConfigProto:
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


def with_filters(task: cluster_task.ClusterTask,
                 config: tf1.ConfigProto | None
                ) -> tf1.ConfigProto | None:
  """Returns the settings of a session of the default graph, with filters.

  Settings that have filters stay as they are. So do the settings of a graph
  with ops on another task that trains: its session needs that task.
  """
  if config is None or config.device_filters or not task.num_ps or (
      _names_another(task)):
    return config
  result = tf1.ConfigProto()
  result.CopyFrom(config)
  result.device_filters.extend(['/job:ps', task.device])
  return result


def _names_another(task: cluster_task.ClusterTask) -> bool:
  """Returns whether an op of the default graph is on another training task."""
  devices = {op.device for op in tf1.get_default_graph().get_operations()}
  for device in map(tf.DeviceSpec.from_string, devices):
    if device.job not in (None, 'ps') and (
        f'/job:{device.job}/task:{device.task or 0}' != task.device):
      return True
  return False
