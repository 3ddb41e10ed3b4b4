# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts about the end of a task, for people."""

from __future__ import annotations

from typing import Optional

from tfplugin.events import record

STOPPED = 'stopped on request'


def stopped(step: Optional[int], saved_step: Optional[int]) -> str:
  """Returns that a training has stopped, where, and how it goes on.

  Args:
    step: The global step; None: it is not known.
    saved_step: That of the last checkpoint; None: it is not known.

  Example:
    >>> stopped(2240, 2239)
    'stopped on request at step 2,240, saved model.ckpt-2239, the same command \
goes on'
  """
  text = STOPPED if step is None else f'{STOPPED} at step {step:,}'
  if saved_step is None:
    return text
  return f'{text}, saved model.ckpt-{saved_step}, the same command goes on'


def describe(event: record.Event) -> str:
  """Returns how a task has ended, from its last event."""
  if event.name == 'ended':
    return 'has done its work'
  if event.name == 'stopped':
    return stopped(event.step, event.details.get('saved_step'))
  message = str(event.details.get('message', '')).split('\n')[0]
  return f'died: {event.details.get("error")}: {message}'
