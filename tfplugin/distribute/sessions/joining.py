# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Server and sessions of a worker that joins a run.

No other task's cluster names this worker, and a TensorFlow server's cluster
never changes. Two things let it train nevertheless:

  * Its server starts in a cluster of its own, with the only job `boot`. A
    server with the worker's own name could not take a session of another
    cluster.
  * Its sessions bring their cluster along: the parameter servers and itself.
    Each parameter server then opens connections for that session alone. The
    sessions share the variables of the other sessions.

The sessions do not see other workers, and other workers do not see it. Its end
breaks no other session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task
from tfplugin.distribute.sessions import membership

tf1 = tf.compat.v1

_BOOT = 'boot'


def session_config(task: cluster_task.ClusterTask,
                   config: Optional[tf1.ConfigProto] = None) -> tf1.ConfigProto:
  """Returns `config` with the cluster of a worker that joins.

  In any other task it is a copy of `config`. None stands for the default.
  """
  result = tf1.ConfigProto()
  if config is not None:
    result.CopyFrom(config)
  if membership.read().joins:
    spec = task.cluster_spec
    result.cluster_def.CopyFrom(tf.train.ClusterSpec({
        'ps': {index: spec.task_address('ps', index)
               for index in spec.task_indices('ps')},
        task.job: {task.index: spec.task_address(task.job, task.index)},
    }).as_cluster_def())
    # Otherwise the session would have variables of its own.
    result.experimental.share_session_state_in_clusterspec_propagation = True
  return result


@contextlib.contextmanager
def entered(task: cluster_task.ClusterTask,
            estimator: tf.estimator.Estimator) -> Iterator[None]:
  """Lets an Estimator train in a worker that joins; else it changes nothing."""
  if not membership.read().joins:
    yield
    return
  _tf_internals.start_at_once(estimator)
  address = task.cluster_spec.task_address(task.job, task.index)

  def boot(arguments: dict[str, Any]) -> dict[str, Any]:
    return {**arguments, 'server_or_cluster_def': {_BOOT: [address]},
            'job_name': _BOOT, 'task_index': 0}

  with _tf_internals.servers_and_sessions_through(
      boot, lambda config: session_config(task, config)):
    yield
