# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the Saver that restores local variables after their start."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.checkpoints import local_state
from tfplugin.distribute.sessions import session_interception

tf1 = tf.compat.v1


class _Model:
  """A global variable, and a whole and a partitioned local one."""

  def __init__(self):
    self.step = tf1.train.create_global_step()
    self.whole = tf1.get_variable(
        'whole', initializer=1.0, collections=['local_variables'])
    self.parts = list(tf1.get_variable(
        'parts', [2], initializer=tf1.zeros_initializer(),
        collections=['local_variables'],
        partitioner=tf1.fixed_size_partitioner(2)))
    self.local = [self.whole, *self.parts]
    self.saver = local_state.LocalStateSaver(
        {'global_step': self.step, 'whole': self.whole, 'parts': self.parts},
        self.local)
    self.train = tf.group(*(v.assign_add(tf.ones_like(v))
                            for v in (self.step, *self.local)))

  def monitored(self, directory, hooks=()):
    return tf1.train.MonitoredTrainingSession(
        checkpoint_dir=str(directory), hooks=hooks, save_summaries_steps=None,
        scaffold=tf1.train.Scaffold(saver=self.saver),
        save_checkpoint_steps=2, log_step_count_steps=None)


class _Seeing(tf1.train.SessionRunHook):

  def __init__(self, model):
    self._model, self.seen = model, []

  def after_create_session(self, session, coord):
    self.seen.append([v.tolist() for v in session.run(self._model.local)])


def _train(directory, steps):
  """Returns the local variables at the start and at the end."""
  with tf.Graph().as_default():
    model = _Model()
    hook = _Seeing(model)
    with model.monitored(directory, [hook]) as session:
      for _ in range(steps):
        session.run(model.train)
      end = [v.tolist() for v in session.run(model.local)]
  return hook.seen, end


def test_a_monitored_session_begins_with_them(behavior, tmp_path):
  del behavior
  assert _train(tmp_path, 3) == ([[1, [0], [0]]], [4, [3], [3]])
  assert _train(tmp_path, 0) == ([[4, [3], [3]]], [4, [3], [3]])
  # TensorFlow's hook saves when a session begins, before other hooks.
  assert tf.train.load_checkpoint(str(tmp_path)).get_tensor('whole') == 4
  assert _train(tmp_path, 2) == ([[4, [3], [3]]], [6, [5], [5]])


def test_a_session_after_a_lost_one_has_those_of_its_checkpoint(
    behavior, tmp_path):
  class Losing(tf1.train.SessionRunHook):
    is_lost = False

    def after_run(self, run_context, run_values):
      if run_context.session.run(model.step) == 3 and not self.is_lost:
        self.is_lost = True
        raise tf.errors.AbortedError(None, None, 'The session is lost.')

  with tf.Graph().as_default():
    model = _Model()
    seeing = _Seeing(model)
    with model.monitored(tmp_path, [seeing, Losing()]) as session:
      for _ in range(3):
        session.run(model.train)
      # Lost at 3, from the checkpoint of 2, and the step was made again.
      assert session.run([model.step, model.whole]) == [3, 4]
  assert seeing.seen == [[1, [0], [0]], [3, [2], [2]]]


def test_a_session_that_restores_nothing_gets_those_of_the_newest_checkpoint(
    behavior, tmp_path):
  _train(tmp_path, 3)
  with tf.Graph().as_default():
    model = _Model()
    set_step = model.step.assign(9).op

    def keep(prepare, arguments):
      return prepare(arguments['master'], init_op=set_step)

    session_interception.in_place_of_start(keep)
    with model.monitored(tmp_path) as session:
      assert session.run([model.step, model.whole]) == [9, 4]


def test_another_saver_restores_none(behavior, tmp_path):
  del behavior
  _train(tmp_path, 3)
  with tf.Graph().as_default():
    model = _Model()
    model.saver = tf1.train.Saver([model.step])
    with model.monitored(tmp_path) as session:
      assert session.run([model.step, model.whole]) == [3, 1]


@pytest.fixture(name='warnings')
def fixture_warnings(monkeypatch):
  warnings = []
  monkeypatch.setattr(tf1.logging, 'warning',
                      lambda form, *args: warnings.append(form % args))
  return warnings


@pytest.mark.parametrize('is_first', [True, False])
def test_a_restore_before_the_start_warns(
    behavior, tmp_path, warnings, is_first):
  _train(tmp_path, 3)
  with tf.Graph().as_default(), tf1.Session() as session:
    model = _Model()
    start = tf1.local_variables_initializer()
    if not is_first:
      session.run(start)
    model.saver.restore(session, tf1.train.latest_checkpoint(str(tmp_path)))
    if is_first:
      session.run(start)
    assert session.run(model.whole) == (1 if is_first else 4)
  assert len(warnings) == is_first
  assert all("['whole', 'parts/part_0', 'parts/part_1']" in warning and
             'local_variables_initializer' in warning for warning in warnings)


def test_a_monitored_session_does_not_warn(behavior, tmp_path, warnings):
  for _ in range(2):
    _train(tmp_path, 1)
  assert not [w for w in warnings if 'local variables' in w]


def test_a_saver_of_no_local_variable_is_a_plain_one(behavior, tmp_path):
  del behavior
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    v = tf1.get_variable('v', initializer=1.0)
    saver = local_state.LocalStateSaver({'v': v}, [])
    session.run(v.initializer)
    path = saver.save(session, str(tmp_path / 'c'))
    session.run(v.assign(2.0))
    saver.restore(session, path)
    assert session.run(v) == 1
  assert not [op for op in graph.get_operations()
              if op.name.startswith('restore_state')]


def test_reshape_is_for_both_restores(behavior, tmp_path):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    v = tf1.get_variable('v', initializer=[[5.0]])
    session.run(v.initializer)
    path = tf1.train.Saver().save(session, str(tmp_path / 'c'))
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=[1.0],
                         collections=['local_variables'])
    saver = local_state.LocalStateSaver({'v': v}, [v], reshape=True)
    with tf1.train.MonitoredSession(tf1.train.ChiefSessionCreator(
        tf1.train.Scaffold(saver=saver),
        checkpoint_filename_with_path=path)) as session:
      assert session.run(v) == [5]
