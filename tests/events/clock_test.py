# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the clock of a run."""

import time

import pytest

from tfplugin.events import clock


@pytest.fixture(name='host')
def fixture_host(monkeypatch):
  """The host's clock, which can be set."""
  host = {'time': 1e9, 'monotonic': 50.0}
  monkeypatch.setattr(time, 'time', lambda: host['time'])
  monkeypatch.setattr(time, 'monotonic', lambda: host['monotonic'])
  clock._ahead.cache_clear()
  yield host
  clock._ahead.cache_clear()


def _restart(monkeypatch, variables):
  """A process that starts now, with some variables."""
  clock._ahead.cache_clear()
  for name, value in variables.items():
    monkeypatch.setenv(name, value)


def test_it_begins_as_the_hosts_clock_and_never_jumps(host, monkeypatch):
  monkeypatch.delenv(clock.VARIABLE, raising=False)
  assert clock.now() == 1e9
  host.update(time=1e9 - 3600, monotonic=53.0)
  assert clock.now() == 1e9 + 3


def test_a_task_that_starts_later_has_the_launchers_clock(host, monkeypatch):
  monkeypatch.delenv(clock.VARIABLE, raising=False)
  variables = clock.variables()
  host.update(time=1e9 + 7203, monotonic=53.0)
  _restart(monkeypatch, variables)
  assert clock.now() == 1e9 + 3
  assert clock.variables() == variables
  # What another machine's launcher has set says nothing here.
  _restart(monkeypatch, {clock.VARIABLE: 'another 5.0'})
  assert clock.now() == 1e9 + 7203
