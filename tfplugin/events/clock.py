# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clock of a run: it begins as the host's clock, and never jumps.

A host's clock may be set while a run lasts. Differences of two times of this
clock stay durations. A launcher gives its clock to the tasks on its machine, so
that a task that restarts after such a change has the others' time. A later
session of a run begins after the last event of the session before.
"""

from __future__ import annotations

import functools
import os
import pathlib
import time

# The boot of the machine, and the clock's seconds ahead of time.monotonic().
VARIABLE = 'TFPLUGIN_CLOCK'
_BOOT = pathlib.Path('/proc/sys/kernel/random/boot_id')


def now() -> float:
  """Returns the seconds since the epoch."""
  return _ahead(os.environ.get(VARIABLE, '')) + time.monotonic()


def variables() -> dict[str, str]:
  """Returns the environment variable that gives this clock to a process."""
  ahead = _ahead(os.environ.get(VARIABLE, ''))
  return {VARIABLE: f'{_boot()} {ahead!r}'}


def not_before(moment: float) -> None:
  """Sets this clock forward, if it is behind a moment of the run.

  The host's clock was set back since. For this process and its children.
  """
  behind = moment - now()
  if behind > 0:
    ahead = _ahead(os.environ.get(VARIABLE, '')) + behind
    os.environ[VARIABLE] = f'{_boot()} {ahead!r}'


@functools.lru_cache
def _ahead(value: str) -> float:
  """Returns the seconds ahead; by the host's clock if another boot's."""
  boot, _, ahead = value.rpartition(' ')
  if boot and boot == _boot():
    return float(ahead)
  return time.time() - time.monotonic()


@functools.lru_cache
def _boot() -> str:
  try:
    return _BOOT.read_text().strip()
  except OSError:  # No Linux: a clock for each process.
    return ''
