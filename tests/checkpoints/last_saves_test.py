# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of when the last checkpoint is saved, and by whom."""

import tensorflow as tf

from tfplugin.checkpoints import last_saves

tf1 = tf.compat.v1


class _Others:
  """Make one step whenever they are looked at; `max_steps` is 5."""

  def __init__(self, steps):
    self._steps = steps

  def awaits_others(self):
    return True

  def comes_after(self, global_step):
    return global_step >= 5

  def wait(self, while_waiting):
    while self._steps:
      self._steps.pop(0)()
      while_waiting()


class _Session:
  """Holds the global step."""

  step = 0

  def run(self, fetch):
    del fetch
    return self.step


def _last_save(monkeypatch, session, others_make=(), every_steps=100):
  monkeypatch.setattr(last_saves, '_LOOK_SECS', 0.0)

  def step():
    session.step += 1

  last = last_saves.LastSave(
      _Others([step for _ in others_make]), 'dir',
      tf1.train.SecondOrStepTimer(every_steps=every_steps))
  saved = []

  def save(of_session, arguments):
    del of_session
    saved.append(arguments['global_step'])

  def ask(path='dir/model.ckpt'):
    """As the hook of a Saver does; returns whether the save is postponed."""
    return last.postpones(session.step, save, {
        'save_path': path, 'global_step': session.step})

  return last, ask, saved


def test_a_save_at_max_steps_is_made_at_the_end(monkeypatch):
  session = _Session()
  last, ask, saved = _last_save(monkeypatch, session)
  assert not ask()
  session.step = 5
  assert ask()
  last.wait(session, None)
  # The Saver's hook has saved at this step, as far as it knows.
  last.make_up(session, 5)
  assert saved == [5]
  last.make_up(session, 5)
  assert saved == [5]


def test_the_savers_hook_saves_what_others_have_stepped(monkeypatch):
  session = _Session()
  last, ask, saved = _last_save(monkeypatch, session, others_make=range(3))
  session.step = 4
  assert not ask()
  last.wait(session, None)
  assert session.step == 7
  last.make_up(session, 7)
  assert not saved  # The hook does it, later or before.
  assert not ask()
  last.make_up(session, 7)
  assert not saved


def test_saves_go_on_while_others_train(monkeypatch):
  session = _Session()
  last, ask, saved = _last_save(
      monkeypatch, session, others_make=range(10), every_steps=4)
  assert not ask()
  last.wait(session, None)
  assert saved == [4, 8]
  # Another wait, of the second hook that asks for it, is none.
  last.wait(session, None)
  assert saved == [4, 8]


def test_a_save_elsewhere_is_nobodys_last(monkeypatch):
  session = _Session()
  session.step = 5
  last, ask, saved = _last_save(monkeypatch, session)
  assert not ask('best/model.ckpt')
  last.wait(session, None)
  last.make_up(session, 5)
  assert not saved
