# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of a large run that never was, with single points that stand out.

    python -m tests.report.large_run RUN_DIR [TASKS] [STEPS]

writes them: without more arguments those of 50 tasks and 1e6 steps.
"""

from __future__ import annotations

import math
import pathlib
import sys
from collections.abc import Iterator

import numpy as np

from tests.report import hand_written

TASKS = 50
STEPS = 1_000_000
# Of all tasks together.
_STEPS_PER_SEC = 100.0
# As EventsHook and tfplugin-train tell.
_EVENT_SECS = 5.0
_SAMPLE_SECS = 0.5
_SAVE_SECS = 600.0
# What stands out, once in the run: of the last worker, at this share of its
# points, which is neither the first nor the last of a part of the curve.
WHERE = 0.3719
LOSS_SPIKE = 77.0
STALENESS_SPIKE = 99
RATE_DIP = 0.001


def write(run_dir: pathlib.Path, num_tasks: int = TASKS,
          num_steps: int = STEPS) -> None:
  """Writes events, samples, options and the chief's summaries.

  Args:
    run_dir: Where to.
    num_tasks: Of the tasks that train; the first is the chief.
    num_steps: The global step at the end.
  """
  run_dir.mkdir(parents=True, exist_ok=True)
  hand_written.write_options(
      run_dir, wrapper='drop_stale', strategy='none', staleness=10,
      batch_size=32, workers=num_tasks - 1)
  secs = num_steps / _STEPS_PER_SEC
  for index in range(num_tasks):
    task = f'worker:{index - 1}' if index else 'chief:0'
    is_last = index == num_tasks - 1
    events = [*_events(task, secs, num_tasks, is_last),
              *_samples(task, secs, index, is_last)]
    hand_written.write_events(run_dir, *sorted(events, key=lambda e: e.time))
  steps = np.arange(100, num_steps + 1, 100)
  hand_written.write_scalars(run_dir, 'loss', *(
      (step / _STEPS_PER_SEC, int(step), 1 / math.sqrt(step))
      for step in steps))


def last_worker(num_tasks: int) -> str:
  """Returns the task whose curves have what stands out."""
  return f'worker:{num_tasks - 2}'


def _events(task: str, secs: float, num_tasks: int,
            is_last: bool) -> Iterator:
  rate = _STEPS_PER_SEC / num_tasks
  times = np.arange(0.0, secs, _EVENT_SECS)
  yield hand_written.event(0, task, 'starting', 'begin')
  yield hand_written.event(1, task, 'starting', 'end', step=0)
  for i, time in enumerate(times):
    kind = 'instant' if i else 'begin'
    now = RATE_DIP if is_last and i == int(len(times) * WHERE) else (
        rate * (1 + 0.2 * math.sin(i)))
    done = int(rate * time)
    told = {'step': int(time * _STEPS_PER_SEC), 'num_steps': done}
    yield hand_written.event(2 + time, task, 'training', kind, **told,
                             **({'steps_per_sec': round(now, 3)} if i else {}))
    yield hand_written.event(2 + time, task, 'dropping', step=told['step'],
                             num_dropped=done // 50,
                             num_applied=done - done // 50)
    if task == 'chief:0' and i and time % _SAVE_SECS < _EVENT_SECS:
      yield hand_written.event(3 + time, task, 'saving', 'begin',
                               step=told['step'])
      yield hand_written.event(4 + time, task, 'saving', 'end')
  yield hand_written.event(secs + 3, task, 'ended')


def _samples(task: str, secs: float, index: int, is_last: bool) -> Iterator:
  times = np.arange(0.0, secs, _SAMPLE_SECS)
  noise = np.random.default_rng(index)
  losses = 2 / np.sqrt(1 + times) + noise.normal(0, 0.05, len(times))
  staleness = noise.poisson(index % 7 + 1, len(times))
  if is_last:
    place = int(len(times) * WHERE)
    losses[place] = LOSS_SPIKE
    losses[place + len(times) // 3] = math.nan
    staleness[place] = STALENESS_SPIKE
  for time, loss, stale in zip(times, losses, staleness):
    yield hand_written.sample(
        2 + time, task, int(time * _STEPS_PER_SEC), float(loss),
        {'staleness': int(stale)})


if __name__ == '__main__':
  write(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:]))
