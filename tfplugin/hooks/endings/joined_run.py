# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Check of a worker that joins whether its run still exists.

The run does not wait for a worker whose process is starting. It may be over
when the worker has a session to make.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.hooks.endings import chief_report
from tfplugin.hooks.endings import contact

_POLL_SECS = 0.2
# Longer than a parameter server, or the chief, is away to restart: only the end
# of the run closes the ports of all for this time.
AWAY_SECS = 10.0
OVER = 'The run has finished: there is nothing to join.'


class RunFinishedError(Exception):
  """Raised in a worker that joins a run whose training has finished."""


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
  """Ends the context, with a warning, at a RunFinishedError."""
  try:
    yield
  except RunFinishedError as e:
    tf.compat.v1.logging.warning('%s', e)


def check(task: cluster_task.ClusterTask, model_dir: str) -> None:
  """Returns, in a worker that joins, as soon as one of the others answers.

  Raises RunFinishedError if none does and the chief has reported its end in the
  `model_dir`. Without a report TimeoutError follows after some seconds. In
  another task it does nothing.
  """
  if not membership.read().joins:
    return
  spec = task.cluster_spec
  others = [name for name in (*(f'ps:{i}' for i in spec.task_indices('ps')),
                              *task.training_tasks) if name != task.name]
  patience = time_limit.Patience(task.name, AWAY_SECS)
  while len(contact.unreachable(spec, others)) == len(others):
    if chief_report.is_written(model_dir):
      raise RunFinishedError(OVER)
    patience.check(
        f'a sign of the run that it joined: {", ".join(others)}',
        f'The run has ended, without a report in {model_dir}. Start the run '
        'again.')
    time.sleep(_POLL_SECS)
