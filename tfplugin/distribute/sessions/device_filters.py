# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of a cluster that a training session waits for.

TensorFlow makes a session wait for every task that its device filters allow. A
RunConfig has filters for the parameter servers and the task itself, unless the
program passes a `session_config`. Then a session, e.g. of a chief that
restarts, would wait without end for a worker that has finished.
"""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_task

tf1 = tf.compat.v1


def with_filters(task: cluster_task.ClusterTask,
                 config: Optional[tf1.ConfigProto]
                ) -> Optional[tf1.ConfigProto]:
  """Returns the settings of a session of the default graph, with filters.

  Settings that have filters stay as they are. So do those of a graph with ops
  on another task that trains: its session needs that task.
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
