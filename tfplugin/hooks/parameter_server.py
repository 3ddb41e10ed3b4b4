# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameter server that ends when the work is done."""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import server_options
from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.hooks.endings import contact
from tfplugin.hooks.endings import task_records
from tfplugin.hooks.endings import waits

tf1 = tf.compat.v1


def run_parameter_server(config: tf.estimator.RunConfig,
                         time_limit_secs: Optional[float] = None,
                         contact_limit_secs: Optional[float] = 600.0) -> None:
  """Serves until the chief and every worker have reported their end.

  Call it in place of `tf.estimator.train_and_evaluate`, which never returns in
  a parameter server. Chief and workers need a `ReportFinishedHook` each. The
  server lives as long as the process.

  Args:
    config: The Estimator's configuration in a task of type `ps`.
    time_limit_secs: How long to serve at most, in seconds; None: no limit.
    contact_limit_secs: How long to serve, in seconds, while the port of the
      chief is closed: without a chief no task saves, or reports the end. None:
      no limit.

  Raises:
    ValueError: the task is not a `ps`.
    TimeoutError: a limit is reached; the message names the tasks that have not
      reported, or the chief.

  Differences from tf.contrib: there a parameter server never ended.
  """
  task = cluster_task.from_config(config)
  if task.job != 'ps':
    raise ValueError('`config` must describe a task of type `ps`. Received: '
                     f'{task.job!r}. Call `tf.estimator.train_and_evaluate` in '
                     'the other tasks.')
  # The name keeps the server alive while this function waits.
  server = tf.distribute.Server(
      task.cluster_spec,
      job_name='ps',
      task_index=task.index,
      config=server_options.of_session(config.session_config),
      protocol=config.protocol)
  tf1.logging.info('Serving at %s until the work is done.', server.target)
  if membership.read().is_open:
    task_records.publish(task.cluster_spec, task.index,
                         membership.description(task.cluster_spec))
  chief = contact.Contact(task.cluster_spec, task.training_tasks[0], task.name,
                          contact_limit_secs)
  event_log.write('starting', record.END)
  with event_log.span('waiting', on=task.training_tasks):
    waits.wait_for_tasks(
        task.cluster_spec,
        task.training_tasks,
        task.name,
        time_limit_secs,
        ps_index=task.index,
        while_waiting=chief.check)
