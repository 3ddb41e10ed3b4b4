# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Messages for users about the end of a task."""

from __future__ import annotations

from typing import Optional

from tfplugin.events import record

STOPPED = 'stopped on request'
CONTINUES = 'the same command continues'


def stopped(step: Optional[int], saved_step: Optional[int]) -> str:
  """Returns the message that a training stopped on request.

  `step` is the global step, `saved_step` the step of the last checkpoint; None
  if unknown.

  Example:
    >>> stopped(2240, 2239)
    'stopped on request at step 2,240, saved model.ckpt-2239, the same command \
continues'
  """
  text = STOPPED if step is None else f'{STOPPED} at step {step:,}'
  if saved_step is None:
    return text
  return f'{text}, saved model.ckpt-{saved_step}, {CONTINUES}'


def describe(event: record.Event) -> str:
  """Returns how a task ended, given its last event."""
  if event.name == 'ended':
    return 'finished'
  if event.name == 'stopped':
    return stopped(event.step, event.details.get('saved_step'))
  message = str(event.details.get('message', '')).split('\n')[0]
  return f'failed: {event.details.get("error")}: {message}'
