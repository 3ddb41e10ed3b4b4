# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of holding Ctrl-C back."""

import os
import signal
import threading

import pytest

from tfplugin.bin.processes import local_cluster

pytestmark = pytest.mark.usefixtures('signal_handlers')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM,
                                    signal.SIGHUP])
def test_a_signal_is_noted_and_raised_when_asked(number):
  before = signal.getsignal(number)
  with local_cluster.Interrupts() as noted:
    noted.raise_if_any()
    os.kill(os.getpid(), number)
    assert noted.count == 1
    with pytest.raises(KeyboardInterrupt):
      noted.raise_if_any()
  assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_ends_nothing():
  """As below `nohup`, when the terminal is closed."""
  before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
  try:
    with local_cluster.Interrupts() as noted:
      os.kill(os.getpid(), signal.SIGHUP)
      assert noted.count == 0
  finally:
    signal.signal(signal.SIGHUP, before)


def test_another_thread_leaves_the_handlers_alone():
  before = signal.getsignal(signal.SIGINT)
  seen = []

  def use():
    with local_cluster.Interrupts() as noted:
      seen.append((signal.getsignal(signal.SIGINT), noted.count))

  thread = threading.Thread(target=use)
  thread.start()
  thread.join()
  assert seen == [(before, 0)]
