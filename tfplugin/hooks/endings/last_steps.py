# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chief's wait for the others' last steps, before its last checkpoint."""

from __future__ import annotations

from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.hooks.endings import lost_peers
from tfplugin.hooks.endings import waits

tf1 = tf.compat.v1


class LastSteps:
  """Waits until no other task trains any more, for any reason.

  Saving takes no lock. A checkpoint that is written while workers train may
  hold a variable between its update and its clip. It may be named after another
  step than it holds, and lacks the steps in flight.

  The wait can only delay the save. At its limit the checkpoint is saved all the
  same. A worker may be waiting for the chief, whose session then continues to
  its end. The later wait at the end of training handles a worker that does not
  end.
  """

  def __init__(self, task: cluster_task.ClusterTask, max_steps: Optional[int],
               time_limit_secs: float,
               has_stopped: Callable[[], bool] = bool):
    """Prepares the wait, for the chief only.

    `max_steps` is the global step at which training ends, or None.
    `time_limit_secs` counts from the last step of any worker. `has_stopped`
    returns whether a signal asks for the end; then there is no wait.
    """
    self._task = task
    self._max_steps = max_steps
    self._time_limit_secs = time_limit_secs
    self._has_stopped = has_stopped

  def comes_after(self, global_step: int) -> bool:
    """Returns whether a checkpoint of this step waits for the end."""
    return (self._max_steps is not None and global_step >= self._max_steps and
            self.awaits_others())

  def awaits_others(self) -> bool:
    """Returns whether this is a chief that trains with others."""
    return waits.awaits_others(self._task)

  def wait(self, while_waiting: Callable[[], None]) -> None:
    """Waits; calls `while_waiting` between two checks.

    Raises LostPeerError if a parameter server has lost its variables meanwhile.
    """

    def look():
      if self._has_stopped():
        raise _StoppedError
      while_waiting()

    try:
      look()
      waits.wait_for_workers(
          self._task, self._time_limit_secs, look)
    except (tf.errors.AbortedError, tf.errors.UnavailableError,
            tf.errors.FailedPreconditionError) as e:
      raise lost_peers.loss(
          f'{self._task.name} lost a parameter server while it waited for the '
          f'last steps of the workers. Received: {e.message} Restart this '
          'task; it continues from the newest checkpoint.') from e
    except _StoppedError:
      tf1.logging.info('%s does not wait for the workers: a signal stopped it.',
                       self._task.name)
    except TimeoutError as error:
      tf1.logging.warning('%s The checkpoint is saved as it is.', error)


class _StoppedError(Exception):
  """A signal asks for the end."""
