# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of holding signals back; cluster_training_test.py has whole runs."""

import os
import signal
import threading

import pytest

from tfplugin import hooks


class _Context:
  """As much of a run's context as is used."""

  is_to_stop = False

  def request_stop(self):
    self.is_to_stop = True


def _stops(hook):
  context = _Context()
  hook.after_run(context, None)
  return context.is_to_stop


@pytest.fixture(name='hook')
def fixture_hook(signal_handlers):
  del signal_handlers
  hook = hooks.StopInOrderHook()
  yield hook
  hook.release()


def test_a_signal_ends_the_loop_and_is_raised_afterwards(hook):
  hook.after_create_session(None, None)
  assert not _stops(hook)
  os.kill(os.getpid(), signal.SIGTERM)
  assert _stops(hook)
  with pytest.raises(SystemExit) as ended:
    hook.raise_if_stopped()
  assert ended.value.code == 143


def test_a_second_signal_acts_at_once(hook):
  hook.after_create_session(None, None)
  os.kill(os.getpid(), signal.SIGINT)
  with pytest.raises(KeyboardInterrupt):
    os.kill(os.getpid(), signal.SIGINT)
  assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_session_that_is_made_anew_changes_nothing(hook):
  for _ in range(2):
    hook.after_create_session(None, None)
  hook.raise_if_stopped()
  assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_stays(hook):
  seen = []
  previous = signal.signal(signal.SIGTERM, lambda *args: seen.append(args[0]))
  try:
    hook.after_create_session(None, None)
    os.kill(os.getpid(), signal.SIGTERM)
  finally:
    signal.signal(signal.SIGTERM, previous)
  assert seen == [signal.SIGTERM] and not _stops(hook)


def test_another_thread_leaves_the_handlers_alone(hook):
  thread = threading.Thread(
      target=lambda: hook.after_create_session(None, None))
  thread.start()
  thread.join()
  assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
