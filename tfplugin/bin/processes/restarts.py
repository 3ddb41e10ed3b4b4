# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules that decide whether and when a failed process restarts.

The exit status says whether another attempt can help, by the rules of
Kubernetes' TFJob; docs/launcher.md has the table.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping

from tfplugin.bin import command_line
from tfplugin.faults import language
from tfplugin.hooks.shutdown import lost_peers

NEVER = 'never'
ON_FAILURE = 'on_failure'
ALWAYS = 'always'
POLICIES = (NEVER, ON_FAILURE, ALWAYS)

# The exit status of a stalled run. TFJob leaves this number to users and takes
# it as worth another attempt.
STALLED = 138
# Besides signals. 130 and 143 are a shell's numbers for SIGINT and SIGTERM.
_WORTH_A_TRY = (lost_peers.EXIT_STATUS, 130, 137, STALLED, 143)
_LONGEST_DELAY_SECS = 60.0
# After this time a failure counts as a new one.
WELL_SECS = 60.0


def is_permanent(status: int) -> bool:
  """Returns whether a process with this exit status would fail again.

  A negative status is the signal that ended the process.

  Example:
    >>> is_permanent(1), is_permanent(-9), is_permanent(-11), is_permanent(143)
    (True, False, True, False)
  """
  if status < 0:
    return -status == signal.SIGSEGV
  return status not in _WORTH_A_TRY


def parse(text: str) -> dict[str, str]:
  """Returns the policy of each job; raises `ValueError` for another text.

  `text` is one policy for all jobs, or e.g. `worker=always,ps=on_failure`; a
  job that is not named never restarts.

  Example:
    >>> parse('ps=always')['ps'], parse('ps=always')['chief']
    ('always', 'never')
  """
  if text in POLICIES:
    return dict.fromkeys(language.JOBS, text)
  rules, named = dict.fromkeys(language.JOBS, NEVER), set()
  for part in text.split(','):
    job, _, policy = part.strip().partition('=')
    if job not in language.JOBS or policy not in POLICIES:
      raise ValueError(
          f'`restart` must be one of {", ".join(POLICIES)}, or JOB=POLICY for '
          f'{", ".join(language.JOBS)}. Received: {text!r}. Write e.g. '
          '"on_failure", or "worker=always,ps=on_failure".')
    if job in named:
      raise ValueError(f'`restart` must give one policy to {job}. Received: '
                       f'{text!r}. Leave out the others.')
    named.add(job)
    rules[job] = policy
  return rules


@dataclasses.dataclass(frozen=True)
class RestartPolicy:
  """The restart rules of a run.

  Attributes:
    rules: The policy of each job; see `parse`.
    max_restarts: The limit for each task.
    delay_secs: Seconds before the second restart of a task; the first comes at
      once. Each further one waits twice as long, at most a minute, until a
      process of it has lived for a minute.
    has_spare: Whether a spare process is kept for the next task that restarts.
    is_together: Whether the training tasks restart together. Without a
      parameter server they have to, because they hold the variables themselves.
  """

  rules: Mapping[str, str] = dataclasses.field(
      default_factory=lambda: parse(NEVER))
  max_restarts: int = 3
  delay_secs: float = 1.0
  has_spare: bool = False
  is_together: bool = False

  def __post_init__(self):
    """Raises `ValueError` if a setting is out of its range."""
    command_line.check_integer('max_restarts', self.max_restarts, 0)
    command_line.check_finite('restart_delay_secs', self.delay_secs)

  def longest_delay(self, job: str) -> float:
    """Returns the longest restart delay of a job's tasks in seconds."""
    if self.rules[job] == NEVER:
      return 0.0
    return self._delay_after(self.max_restarts - 1)

  def delay(self, job: str, status: int, num_restarts: int,
            num_in_a_row: int) -> float | None:
    """Returns the seconds until a task restarts; None if it does not.

    `num_restarts` counts all its restarts so far. `num_in_a_row` counts only
    restarts since a process of it lived for `WELL_SECS`.
    """
    policy = self.rules[job]
    if (status == 0 or policy == NEVER or num_restarts >= self.max_restarts or
        policy == ON_FAILURE and is_permanent(status)):
      return None
    return self._delay_after(num_in_a_row)

  def _delay_after(self, num_in_a_row: int) -> float:
    if num_in_a_row < 1:
      return 0.0
    return min(self.delay_secs * 2**min(num_in_a_row - 1, 60),
               _LONGEST_DELAY_SECS)
