# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a failed process costs the measurement on the network: its slot."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib

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


def test_a_failed_slot_is_measured_again_by_new_processes(measured):
  _, without = measured(())
  starts, made = measured((3, 7))
  assert made == without
  assert starts == [0, 3, 6]


def test_what_fails_at_once_is_no_chance(measured):
  with pytest.raises(RuntimeError, match='ended with status 1'):
    measured((3, 4))
