# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a launch knows of the tasks of other launches."""

import socket

import pytest

from tfplugin.bin.launches import elsewhere


@pytest.fixture
def clock(monkeypatch):
  """The time, to be set by the test."""
  now = [1000.0]
  monkeypatch.setattr('time.monotonic', lambda: now[0])
  return now


def test_they_have_ended_when_none_is_there_for_long_enough(clock):
  with socket.create_server(('127.0.0.1', 0)) as server:
    port = server.getsockname()[1]
    watch = elsewhere.Elsewhere(
        {'chief': ['127.0.0.1:1'], 'worker': [f'127.0.0.1:{port}']},
        ['chief:0', 'worker:0'], away_secs=30.0, has_chief=False)
    assert not watch.have_ended()
    clock[0] += 3600  # As long as one of them is there.
    assert not watch.have_ended()
  for _ in range(9):
    clock[0] += 3
    assert not watch.have_ended()
  clock[0] += 3
  assert watch.have_ended()


def test_one_that_comes_back_has_not_ended(clock):
  with socket.create_server(('127.0.0.1', 0)) as server:
    address = server.getsockname()
    watch = elsewhere.Elsewhere({'chief': [f'127.0.0.1:{address[1]}']},
                                ['chief:0'], 30.0, has_chief=False)
    assert not watch.have_ended()
  clock[0] += 29
  assert not watch.have_ended()
  with socket.create_server(address):
    clock[0] += 3
    assert not watch.have_ended()


def test_those_that_never_come_are_named(clock):
  watch = elsewhere.Elsewhere({'chief': ['127.0.0.1:1']}, ['chief:0'], 30.0,
                              has_chief=False)
  assert not watch.have_ended()
  clock[0] += 599
  assert not watch.have_ended()
  clock[0] += 3
  with pytest.raises(TimeoutError, match='This launch waited 600 s for chief:0 '
                     'at 127.0.0.1:1. Call tfplugin-launch on the other'):
    watch.have_ended()


def test_those_that_ended_before_this_launchs_own_are_not_waited_for(clock):
  with socket.create_server(('127.0.0.1', 0)) as server:
    watch = elsewhere.Elsewhere(
        {'chief': [f'127.0.0.1:{server.getsockname()[1]}']}, ['chief:0'], 30.0,
        has_chief=False)
    watch.look()
  clock[0] += 31
  assert watch.have_ended()


def test_a_launch_that_has_the_chief_can_do_without_them(clock):
  watch = elsewhere.Elsewhere({'worker': ['127.0.0.1:1']}, ['worker:0'], 30.0,
                              has_chief=True)
  clock[0] += 3600
  assert not watch.have_ended()
  clock[0] += 31
  assert watch.have_ended()
