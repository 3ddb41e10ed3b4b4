# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which process that has failed is started again, and when.

The exit status says whether another try can help, read as Kubernetes' TFJob
reads it: docs/launcher.md has the table.
"""

from __future__ import annotations

import dataclasses
import math
import signal
from collections.abc import Mapping
from typing import Optional

from tfplugin.hooks.endings import lost_peers

NEVER = 'never'
ON_FAILURE = 'on_failure'
ALWAYS = 'always'
POLICIES = (NEVER, ON_FAILURE, ALWAYS)
JOBS = ('chief', 'worker', 'ps', 'evaluator')

# The status of a run that was given up because nobody made a step; TFJob leaves
# the number to users, for what is worth another try.
STALLED = 138
# Beside those of signals. 130 and 143: as a shell says of SIGINT and SIGTERM.
_WORTH_A_TRY = (lost_peers.EXIT_STATUS, 130, 137, STALLED, 143)
_LONGEST_DELAY_SECS = 60.0
# A process that lived for as long was well: what ended it is something new.
WELL_SECS = 60.0


def is_permanent(status: int) -> bool:
  """Whether a process that ended so would end so again.

  Args:
    status: The exit status; negative: the signal that ended the process.

  Example:
    >>> is_permanent(1), is_permanent(-9), is_permanent(-11), is_permanent(143)
    (True, False, True, False)
  """
  if status < 0:
    return -status == signal.SIGSEGV
  return status not in _WORTH_A_TRY


def parse(text: str) -> dict[str, str]:
  """Reads which policy each job has.

  Args:
    text: One policy for all, or some as `worker=always,ps=on_failure`; a job
      that is not named is never started again.

  Returns:
    The policy of each job.

  Raises:
    ValueError: there is no such job or policy.

  Example:
    >>> parse('ps=always')['ps'], parse('ps=always')['chief']
    ('always', 'never')
  """
  if text in POLICIES:
    return dict.fromkeys(JOBS, text)
  rules = dict.fromkeys(JOBS, NEVER)
  for part in text.split(','):
    job, _, policy = part.strip().partition('=')
    if job not in JOBS or policy not in POLICIES:
      raise ValueError(
          f'`restart` must be one of {", ".join(POLICIES)}, or give one to '
          f'some of {", ".join(JOBS)}. Received: {text!r}. Write e.g. '
          '"on_failure", or "worker=always,ps=on_failure".')
    rules[job] = policy
  return rules


@dataclasses.dataclass(frozen=True)
class RestartPolicy:
  """The rules of a run.

  Attributes:
    rules: The policy of each job; see `parse`.
    max_restarts: How often each task is started again at most.
    delay_secs: Seconds before the first restart of a task; each further one
      waits twice as long, a minute at most, until a process of it has lived
      for a minute.
    is_together: Whether the tasks that train start again together, as those
      without a parameter server have to, which hold the variables themselves.
  """

  rules: Mapping[str, str] = dataclasses.field(
      default_factory=lambda: parse(NEVER))
  max_restarts: int = 3
  delay_secs: float = 1.0
  is_together: bool = False

  def __post_init__(self):
    """Checks the settings.

    Raises:
      ValueError: a setting is out of its range.
    """
    if (isinstance(self.max_restarts, bool) or
        not isinstance(self.max_restarts, int) or self.max_restarts < 0):
      raise ValueError('`max_restarts` must be an integer of at least 0. '
                       f'Received: {self.max_restarts!r}')
    if not 0 <= self.delay_secs < math.inf:
      raise ValueError('`restart_delay_secs` must be at least 0 and finite. '
                       f'Received: {self.delay_secs!r}')

  def longest_delay(self, job: str) -> float:
    """Returns after how many seconds at most a task of a job starts again."""
    if self.rules[job] == NEVER or not self.max_restarts:
      return 0.0
    num_doublings = min(self.max_restarts - 1, 60)
    return min(self.delay_secs * 2**num_doublings, _LONGEST_DELAY_SECS)

  def delay(self, job: str, status: int, num_restarts: int,
            num_in_a_row: Optional[int] = None) -> Optional[float]:
    """Returns in how many seconds a task starts again; None: it does not.

    Args:
      job: Of the task.
      status: How its process ended; see `is_permanent`.
      num_restarts: How often it was started again before.
      num_in_a_row: How often since a process of it lived for `WELL_SECS`; None:
        each time.
    """
    num_in_a_row = num_restarts if num_in_a_row is None else num_in_a_row
    policy = self.rules[job]
    if (status == 0 or policy == NEVER or num_restarts >= self.max_restarts or
        policy == ON_FAILURE and is_permanent(status)):
      return None
    return min(self.delay_secs * 2**min(num_in_a_row, 60),
               _LONGEST_DELAY_SECS)
