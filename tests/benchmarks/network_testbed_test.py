# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is measured in a slot on the network, and that a failure costs one."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib

import numpy as np
import pytest

from benchmarks.network import cells
from benchmarks.network import testbed

_LINK = cells.Link(1000, 0.1, 1, 3, ('local', 'period 10, plain'))
_QUICK = cells.selected(_LINK, cells.STAYING_CELLS, is_quick=True)


class _Hosts:
  addresses = ('a', 'b', 'c')

  def __init__(self):
    self.mbit = None

  def shape(self, mbit):
    self.mbit = mbit


@pytest.fixture(name='measured')
def fixture_measured(monkeypatch):
  """Measures without hosts: fails at the slots of a list, by their number."""

  def measure(fails_at):
    starts, asked, made, made_hosts = [], [], [], _Hosts()

    @contextlib.contextmanager
    def running(self, kinds, python, names):
      del self, python
      assert made_hosts.mbit == _LINK.mbit, 'made for another link'
      assert set(names) <= {cell.name for cell in _QUICK}
      starts.append(len(made))
      yield dict.fromkeys(kinds)

    def slot(link, name):
      asked.append(name)
      if len(asked) - 1 in fails_at:
        raise RuntimeError('worker:0 ended with status 1.')
      made.append((link, name))

    monkeypatch.setattr(testbed.Testbed, '_running', running)
    monkeypatch.setattr(
        testbed, '_measure',
        lambda link, cell, *args: slot(link.name, cell.name))
    monkeypatch.setattr(
        testbed.Testbed, '_measure_visitors',
        lambda self, link, found: slot(link.name, None))
    testbed.Testbed(made_hosts, pathlib.Path()).measure((_LINK,), is_quick=True)
    return starts, made

  return measure


def test_every_cell_is_measured_in_each_round(measured):
  starts, made = measured(())
  names = [name for _, name in made]
  assert starts == [0]
  assert {name: names.count(name) for name in names} == {
      **{cell.name: _LINK.rounds for cell in _QUICK}, None: testbed._VISITS}


def test_workers_that_push_gradients_meet_in_twice_as_many_ways():
  """At the middles of six equal parts, of three rounds."""
  every = [cells.elastic(1, 'plain'), cells.Cell(cells.ASYNC)]
  slots = list(testbed._slots(_LINK, every, visits=2))
  np.testing.assert_allclose(
      [part for part, cell in slots if cell == every[1]],
      (np.arange(6) + 0.5) / 6)
  np.testing.assert_allclose(
      [part for part, cell in slots if cell == every[0]],
      (np.arange(3) + 0.5) / 3)
  assert [cell for _, cell in slots].count(None) == 2


def test_rounds_are_added_where_a_cell_has_been_measured(monkeypatch):
  """With all that its steps are of; others are left as they were."""
  added, built = [], []

  @contextlib.contextmanager
  def running(self, kinds, python, names):
    del self, python
    built.append(set(names))
    yield dict.fromkeys(kinds)

  monkeypatch.setattr(testbed.Testbed, '_running', running)
  monkeypatch.setattr(
      testbed, '_measure', lambda link, cell, *args: added.append(
          (link.name, cell.name)))
  results = {'unshaped': {cells.CALLING_ALONE: {}, cells.ASYNC: {}},
             '100 Mbit/s': {cells.ASYNC: {}, cells.SYNC: {}}}
  testbed.Testbed(_Hosts(), pathlib.Path()).add(
      results, [cells.CALLING_ALONE, cells.ASYNC])
  rounds = {link.name: link.rounds for link in cells.LINKS}
  assert {each: added.count(each) for each in added} == {
      ('unshaped', cells.CALLING_ALONE): rounds['unshaped'],
      ('unshaped', cells.ASYNC): 2 * rounds['unshaped'],
      ('100 Mbit/s', cells.ASYNC): 2 * rounds['100 Mbit/s']}
  assert built == [{cells.LOCAL, cells.CALLING.name, cells.ASYNC},
                   {cells.LOCAL, cells.ASYNC}]
  assert set(results) == {'unshaped', '100 Mbit/s'}


def test_a_new_cell_is_measured_beside_one_that_has_been(monkeypatch):
  added = []
  monkeypatch.setattr(
      testbed.Testbed, '_measure_link', lambda self, link, results, slots: (
          added.extend((link.name, cell.name) for _, cell in slots)))
  testbed.Testbed(_Hosts(), pathlib.Path()).add(
      {'100 Mbit/s': {cells.CROSS_SHARD: {}}, '50 Mbit/s': {cells.SYNC: {}}},
      [cells.CROSS_SHARD, cells.IN_HALVES])
  assert set(added) == {('100 Mbit/s', cells.CROSS_SHARD),
                        ('100 Mbit/s', cells.IN_HALVES)}


def test_workers_of_elastic_averaging_begin_apart(monkeypatch):
  """By half of what one alone would need, with time for more, on slow links."""
  asked = []
  monkeypatch.setattr(testbed, '_measure', lambda *args: asked.append(args))
  monkeypatch.setattr(testbed.page, 'foreseen_secs', lambda *a, **k: 0.25)
  every = {('worker', 0): 'a', ('worker', 1): 'b', ('ps', 0): 'c'}
  for secs, cell in ((99.0, cells.elastic(1, 'plain')),
                     (1.0, cells.elastic(1, 'plain')),
                     (0.0, cells.elastic(1, 'plain')),
                     (99.0, cells.Cell(cells.ASYNC))):
    link = dataclasses.replace(_LINK, apart_secs=secs)
    testbed.Testbed(_Hosts(), pathlib.Path())._measure_stayer(
        link, cell, 0.25, every, {link.name: {}})
  assert [args[3:6] for args in asked] == [
      (0.25, 0.125, 0.25 * cells.COME_APART), (0.25, 0.125, 1.0),
      (0.25, 0.0625, 0.0), (0.25, 0.0625, 0.0)]


@pytest.mark.parametrize('cell, alone, beside', [
    (cells.elastic(1, 'plain'), False, True),
    (cells.Cell(cells.ALONE, 0), True, True),
    (cells.Cell(cells.CALLING_ALONE, 100), True, True),
    (cells.Cell(cells.LOCAL, 0), False, False),
    (cells.Cell(cells.ASYNC), False, False)], ids=lambda each: getattr(
        each, 'name', each))
def test_local_steps_of_both_are_beside_what_processors_limit(
    monkeypatch, cell, alone, beside):
  asked = []
  monkeypatch.setattr(testbed, '_measure', lambda *args: asked.append(args))
  every = {('worker', 0): 'a', ('worker', 1): 'b', ('ps', 0): 'c'}
  testbed.Testbed(_Hosts(), pathlib.Path())._measure_stayer(
      _LINK, cell, 0.5, every, {_LINK.name: {}})
  assert asked[0][2] == ['a', 'b'][:1 if alone else 2]
  assert asked[0][8] == (['a', 'b'] if beside else [])


class _Worker:
  """Answers as a role, with rates in the order of what is asked."""

  def __init__(self, rates):
    self._rates, self.asked, self._secs = iter(rates), [], 0.0

  def ask(self, name, begin, secs, steps):
    del begin, secs, steps
    self.asked.append(name)

  def answer(self, limit_secs):
    del limit_secs
    return [next(self._rates), [10.0, 20.0], 5]

  def processors_secs(self):
    self._secs += 0.5
    return self._secs, self._secs / 5


def test_local_steps_are_measured_before_and_after_a_round():
  """The ones after it are those before the next one, if that is at once."""
  pair = [_Worker([100.0, 8.0, 50.0, 9.0, 25.0, 3.0]),
          _Worker([60.0, 7.0, 60.0, 6.0, 20.0, 3.0])]
  cell, found = cells.elastic(10, 'plain'), {}
  after = None
  for _ in range(2):
    after = testbed._measure(_LINK, cell, pair, 0.1, 0.0, 0.0, found,
                             [_Worker([])], pair, after)
  assert after == [25.0, 20.0]
  assert testbed._measure(_LINK, cells.Cell(cells.ASYNC), pair, 0.1, 0.0, 0.0,
                          found, [_Worker([])]) is None
  for worker in pair:
    assert worker.asked == [cells.LOCAL, cell.name, cells.LOCAL, cell.name,
                            cells.LOCAL, cells.ASYNC]
  figures = found[cell.name]
  # The harmonic means of 100 and 50, 60 and 60; of 50 and 25, 60 and 20.
  np.testing.assert_allclose(figures['local_steps_per_sec'],
                             [[200 / 3, 60.0], [100 / 3, 30.0]])
  assert figures['steps_per_sec'] == [[8.0, 7.0], [9.0, 6.0]]
  # Half a second of each worker for ten steps, and of the server; a fifth of
  # all that is the kernel's.
  np.testing.assert_allclose(figures['processors_ms'],
                             [[100.0, 50.0, 30.0]] * 2)
  assert found[cells.ASYNC]['local_steps_per_sec'] == [None]


def test_a_failed_slot_is_measured_again_by_new_processes(measured):
  _, without = measured(())
  starts, made = measured((3, 7))
  assert made == without
  assert starts == [0, 3, 6]


def test_what_fails_at_once_is_no_chance(measured):
  with pytest.raises(RuntimeError, match='ended with status 1'):
    measured((3, 4))
