# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts are measured in turn, and what fails or does not fit is said."""

from __future__ import annotations

import sys
import time

import pytest
import tensorflow as tf

from benchmarks import machine
from benchmarks import roles
from benchmarks.growth import cells
from benchmarks.growth import forms
from benchmarks.growth import in_process
from benchmarks.growth import run

tf1 = tf.compat.v1


@pytest.mark.parametrize('argv', [['--fast'], ['rows', 'columns']])
def test_unknown_flags_and_parts_are_refused(capsys, argv):
  assert run.main(argv) == 2
  said = capsys.readouterr().err
  assert 'usage: python -m benchmarks.growth.run' in said
  assert 'The parts: workers_1, workers_2, parameters, rows' in said


def test_names_are_those_of_one_part_or_curve():
  names = [part.name for part in cells.PARTS]
  assert len(set(names)) == len(names) == len(cells.TRY)
  for part in cells.PARTS:
    curves = [curve.name for curve in part.curves]
    assert len(set(curves)) == len(curves)
    assert not part.base or part.base == curves[0]


def test_what_takes_too_much_memory_is_left_out_and_said():
  measured = run.Measured()
  with measured.of('all there is', 1e18) as can_run:
    assert not can_run
  assert measured.not_run[-1].startswith('all there is: ')
  assert measured.not_run[-1].endswith('and 1000000000.0 are needed')
  assert not measured.has_failed
  with measured.of('a little', 1.0) as can_run:
    assert can_run


@pytest.mark.parametrize('kind', [RuntimeError, TimeoutError, ValueError])
def test_what_fails_is_said_and_the_rest_goes_on(capsys, kind):
  measured = run.Measured()
  with measured.of('rows, 10', 0.0):
    raise kind('It ended.')
  assert measured.not_run[-1] == 'rows, 10: It ended'
  assert measured.has_failed
  assert 'rows, 10: It ended.' in capsys.readouterr().err
  with pytest.raises(KeyError):  # A mistake of ours is none of the machine's.
    with measured.of('rows, 10', 0.0):
      raise KeyError('a')


@pytest.mark.parametrize('secs, rounds', [(0.0, 4), (9.0, 3), (20.0, 2)])
def test_no_round_begins_after_the_share_of_a_size(monkeypatch, secs, rounds):
  """The share of the first of two sizes is 25 s; 2 rounds are the least."""
  now = [0.0]
  monkeypatch.setattr(time, 'monotonic', lambda: now[0])
  part = cells.Part('p', '', '', '', (1, 2), '', '', (), rounds=4,
                    limit_secs=50.0)
  count = 0
  for _ in run._Clock(part).rounds(0):
    now[0] += secs
    count += 1
  assert count == rounds


def test_a_role_that_ends_is_named_with_its_status():
  with roles.running([[sys.executable, '-c', 'raise SystemExit(3)']],
                     machine.ROOT) as [process]:
    with pytest.raises(RuntimeError, match='the one ended with status 3'):
      roles.Role(process, 'the one').answer(60.0)


def test_a_role_that_does_not_answer_is_named_and_ends_with_its_input():
  program = ('import time\n'
             'from benchmarks import roles\n'
             'requests = roles.requests()\n'
             'roles.say(requests.get())\n'
             'time.sleep(600)')
  with roles.running([[sys.executable, '-c', program]],
                     machine.ROOT) as [process]:
    role = roles.Role(process, 'the one')
    role.ask('a', 1)
    assert role.answer(60.0) == ['a', 1]
    with pytest.raises(TimeoutError, match='the one did not answer in 0.1 s'):
      role.answer(0.1)
    process.stdin.close()
    assert process.wait(60.0) == 0


def _of(name):
  return next(part for part in cells.PARTS if part.name == name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize('name, size', [
    ('variables', 10), ('rows', 100_000), ('parameters', 100_000)])
def test_every_curve_of_a_part_is_measured(monkeypatch, name, size):
  monkeypatch.setattr(forms, 'make_devices', lambda count: tf1.ConfigProto(
      device_count={'CPU': count}, allow_soft_placement=True))
  part = _of(name)
  found = in_process.measures(part, size)
  assert list(found) == [curve.name for curve in part.curves_at(size)]
  for measure in found.values():
    assert measure() > 0.0


def test_operations_grow_linearly_with_towers(monkeypatch):
  """From two on: one tower alone needs nothing that puts towers together."""
  monkeypatch.setattr(forms, 'make_devices', lambda count: None)
  counts = [in_process.measures(_of('towers'), size)['TowerStrategy']()
            for size in (2, 3, 4)]
  assert counts[1] - counts[0] == counts[2] - counts[1] > 0


def test_a_tenth_of_the_variables_is_clipped():
  clips = {}
  for which in (cells.FEW, cells.ALL):
    with tf.Graph().as_default() as graph:
      forms.build(f'clipping, {which}', forms.small_layers(20))
      clips[which] = [op.type for op in graph.get_operations()].count(
          'StatefulPartitionedCall')
  assert clips == {cells.FEW: 2, cells.ALL: 20}
