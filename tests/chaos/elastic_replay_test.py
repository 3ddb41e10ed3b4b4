# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the replay, with runs that are made by the rule in numpy."""

import numpy as np
import pytest

from tests.chaos import elastic_replay

_PERIOD = 2
_COUNTS = [elastic_replay.Count(0.0, 3), elastic_replay.Count(20.0, 4)]


def _run(seed=0, killed=None):
  """Plays four workers; returns their records and the centre at the end.

  The worker `killed` does not begin its last step.

  Each exchange reads the centre at a random time, and its difference arrives at
  another one: between the two others arrive. The last worker starts late.
  """
  rng = np.random.default_rng(seed)
  records, acts = [], []
  for task in range(4):
    start = 20.0 if task == 3 else 0.0
    records.append({'task': f'worker-{task}', 'created': start - 1.0,
                    'steps': []})
    for step in range(59 if task == killed else 60):
      begin = start + step * 0.5 + rng.uniform(0, 0.1)
      read, add = begin + np.sort(rng.uniform(0.0, 0.35, 2))
      acts += [(read, 'read', task, step, begin), (add, 'add', task, step,
                                                   begin + 0.36)]
  center, local, way = 0.0, {}, {}
  for time, act, task, step, other in sorted(acts):
    due = (step + 1) % _PERIOD == 0
    if act == 'read':
      local[task] = local.get(task, center) + 1.0
      workers = 4 if time > 20.0 else 3
      way[task] = (0.9 / _PERIOD / workers * (local[task] - center)
                   if due else 0.0, other)
    else:
      difference, begin = way[task]
      center += difference
      local[task] -= difference
      records[task]['steps'].append((begin, other, local[task]))
  return records, center


@pytest.mark.parametrize('seed', range(3))
def test_a_run_by_the_rule_is_explained(seed):
  records, center = _run(seed)
  exchanges = elastic_replay.replay(records, _PERIOD, {}, _COUNTS, center)
  assert len(exchanges) == 4 * 30
  with pytest.raises(AssertionError, match='must be one of .* at the end'):
    elastic_replay.replay(records, _PERIOD, {}, _COUNTS, center + 1e-4)


@pytest.mark.parametrize('task', [0, 3])
def test_an_exchange_that_a_kill_has_hidden_is_found(task):
  records, center = _run()
  # Others follow the one of worker-0; that of worker-3 is the last of the run.
  begin, _, value = records[task]['steps'].pop()
  killed_at = {f'worker-{task}': begin + 0.1}
  *_, last = elastic_replay.replay(records, _PERIOD, killed_at, _COUNTS, center)
  assert last.task == 'worker-3' and value
  with pytest.raises(AssertionError, match='at the end|must follow'):
    elastic_replay.replay(records, _PERIOD, {}, _COUNTS, center)
  with pytest.raises(AssertionError, match='at the end'):
    elastic_replay.replay(records, _PERIOD, killed_at, _COUNTS, center + 1e-4)


def test_a_killed_worker_may_have_moved_nothing():
  records, center = _run(killed=0)
  killed_at = {'worker-0': records[0]['steps'][-1][1] + 0.1}
  exchanges = elastic_replay.replay(records, _PERIOD, killed_at, _COUNTS,
                                    center)
  assert len(exchanges) == 4 * 30 - 1


def _with(records, task, step, value):
  begin, end, old = records[task]['steps'][step]
  records[task]['steps'][step] = (begin, end, old + value)
  return records


@pytest.mark.parametrize('step, match', [
    (11, 'at the end|must make'), (12, 'Step 13 of worker-1 must make'),
    (0, 'at the end|must start|must make')])
def test_a_wrong_value_is_found(step, match):
  records, center = _run()
  with pytest.raises(AssertionError, match=match):
    elastic_replay.replay(_with(records, 1, step, 1e-4), _PERIOD, {}, _COUNTS,
                          center)


def test_a_rate_for_another_number_of_workers_is_found():
  records, center = _run()
  with pytest.raises(AssertionError, match='must follow from the centre'):
    elastic_replay.replay(records, _PERIOD, {},
                          [elastic_replay.Count(0.0, 3)], center)
