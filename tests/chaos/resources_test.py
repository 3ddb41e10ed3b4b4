# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the samples of what processes hold."""

import os
import time

from tests.chaos import resources


def test_a_task_is_the_process_that_lived_longest():
  def samples(pid, begin, end, memory):
    return [resources.Sample(time, pid, int(memory(time) * 1e6), time // 100, 3,
                             time // 200) for time in range(begin, end, 10)]

  own = [*samples(1, 0, 2000, lambda time: 50),
         *samples(2, 0, 1500, lambda time: time / 10),
         *samples(3, 1500, 1900, lambda time: 1)]
  # Process 2 is a spare at first.
  tasks = {1: ('launcher', 0.0), 2: ('worker:0', 300.0),
           3: ('worker:0', 1500.0)}
  assert list(resources.rows(own, tasks, [850.0, 950.0])) == [
      '| launcher | 33 | 2 | 50, 50, 50 | 6, 19, 19 | 3, 3, 3 |',
      '| worker:0 | 20 | 1 | 92, 146, 149 | 9, 14, 14 | 3, 3, 3 |']
  assert resources.files(sorted(own, key=lambda s: s.time)) == (3, 9)


def test_this_process_is_sampled(tmp_path):
  with resources.sampled(tmp_path):
    # With a limit of a minute: the sampler imports psutil first.
    limit = time.monotonic() + 60
    while time.monotonic() < limit and not (
        (tmp_path / 'resources.jsonl').exists() and resources.read(tmp_path)):
      time.sleep(0.05)
  first = resources.read(tmp_path)[0]
  assert first.pid == os.getpid()
  assert first.memory > 1e7
  assert first.threads >= 1 <= first.descriptors
  assert first.files == 1  # Its own.
