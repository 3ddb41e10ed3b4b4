# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a chief that restarts beside live parameter servers."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.checkpoints import run_mark
from tfplugin.faults import acts
from tfplugin.hooks import checkpoint_guard_hook

tf1 = tf.compat.v1


def _saved(model_dir):
  """Returns step and w of the newest checkpoint."""
  reader = tf.train.load_checkpoint(str(model_dir))
  return reader.get_tensor('global_step'), reader.get_tensor('w')


@pytest.fixture
def cluster():
  """The addresses of a chief and a ps, with the ps running."""
  addresses = ports.make_cluster(0, 1)
  server = tf.distribute.Server(addresses, job_name='ps', task_index=0)
  yield addresses
  del server


def _set_task(monkeypatch, cluster, job):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': job, 'index': 0}}))


class _Chief:
  """A chief's part of a graph, and sessions that end as if it were killed."""

  def __init__(self, model_dir, save_checkpoint_steps=1000, beside=None,
               init_fn=None, hooks=()):
    """`init_fn` takes a function that sets w."""
    config = tf.estimator.RunConfig(str(model_dir))
    with tf1.device(tf1.train.replica_device_setter(
        worker_device='/job:chief', cluster=config.cluster_spec)):
      step = tf1.train.get_or_create_global_step()
      w = tf1.get_variable('w', initializer=0.0)
      self._train_op = tf.group(
          step.assign_add(1), w.assign_add(1.0),
          *([] if beside is None else [beside.assign_add(1.0)]))
      self._poison, self._w = w.assign(np.nan).op, w.read_value()
      load = w.assign(100.0).op
    scaffold = tf1.train.Scaffold(init_fn=init_fn and (
        lambda _, session: init_fn(lambda: session.run(load))))
    # Saves at its start, too.
    self._session = tf1.train.MonitoredTrainingSession(
        config.master, checkpoint_dir=config.model_dir, scaffold=scaffold,
        hooks=[checkpoint_guard_hook.CheckpointGuardHook(config), *hooks],
        save_checkpoint_steps=save_checkpoint_steps, save_summaries_steps=None,
        log_step_count_steps=None, config=config.session_config)

  def run(self, times):
    for _ in range(times):
      self._session.run(self._train_op)
    return self._session.run(self._w)

  def poison(self):
    self._session.run(self._poison)

  def read(self, variable):
    return self._session.run(variable)


@pytest.fixture
def chief_server(monkeypatch, cluster):
  _set_task(monkeypatch, cluster, 'chief')
  server = tf.distribute.Server(cluster, job_name='chief', task_index=0)
  yield
  del server


def test_a_chief_that_comes_back_keeps_what_the_ps_have_learnt(
    behavior, chief_server, tmp_path):
  with tf.Graph().as_default():
    assert _Chief(tmp_path).run(76) == 76.0
  assert _saved(tmp_path) == (0, 0.0)
  with tf.Graph().as_default():
    chief = _Chief(tmp_path)
    # What they hold is saved at once, and the older one is kept beside it.
    assert _saved(tmp_path) == (76, 76.0)
    assert chief.run(1) == 77.0
  paths = tf1.train.get_checkpoint_state(
      str(tmp_path)).all_model_checkpoint_paths
  assert [path.rpartition('-')[2] for path in paths] == ['0', '76']


class _Makes(tf1.train.SessionRunHook):
  """Makes variables when it begins, as TensorFlow's early stopping does."""

  def begin(self):
    with tf1.device('/job:ps'):
      tf1.get_variable('stop', initializer=False, trainable=False)
      self._flag = tf1.get_variable('flag', initializer=1.0, trainable=False)
    self._set = self._flag.assign(tf1.placeholder_with_default(2.0, [])).op
    self._spoil = self._flag.assign(np.nan).op

  def after_create_session(self, session, coord):
    self.found = session.run(self._flag)
    session.run(self._set)

  def after_run(self, run_context, run_values):
    self.spoil = lambda: run_context.session.run(self._spoil)


def test_variables_of_later_hooks_are_a_part_of_the_state(
    behavior, chief_server, tmp_path, caplog):
  hook = _Makes()
  with caplog.at_level('WARNING', 'tensorflow'):
    with tf.Graph().as_default():
      assert _Chief(tmp_path, hooks=[hook]).run(76) == 76.0
    assert hook.found == 1.0
    with tf.Graph().as_default():
      chief = _Chief(tmp_path, hooks=[hook])
      assert _saved(tmp_path) == (76, 76.0)
      assert chief.run(1) == 77.0
    assert hook.found == 2.0
  assert 'restores' not in caplog.text
  hook.spoil()
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    # The checkpoint was saved before the hook set its variable.
    assert _Chief(tmp_path, hooks=[hook]).run(1) == 77.0
  assert '`flag` not finite' in caplog.text
  assert hook.found == 2.0


def test_a_chief_that_comes_back_takes_its_own_from_the_checkpoint(
    behavior, chief_server, cluster, tmp_path):
  # As the slots of an elastic worker, which die with its process.
  def run(times):
    with tf.Graph().as_default() as graph:
      with graph.container('own'), tf1.device('/job:chief/cpu:0'):
        own = tf1.get_variable('own', initializer=100.0, trainable=False)
      chief = _Chief(tmp_path, save_checkpoint_steps=10, beside=own)
      return chief.run(times), chief.read(own)

  assert run(16) == (16.0, 116.0)
  tf1.Session.reset(f'grpc://{cluster["chief"][0]}', ['own'])
  # Steps 0 and 10 were saved; the servers hold step 16.
  assert run(1) == (17.0, 111.0)
  assert run(1) == (18.0, 112.0)  # The process lives: nothing is restored.


def test_a_chief_that_comes_back_to_a_nan_restores(
    behavior, chief_server, tmp_path, caplog):
  with tf.Graph().as_default():
    chief = _Chief(tmp_path)
    chief.run(5)
    chief.poison()
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    assert _Chief(tmp_path).run(1) == 1.0
  assert 'chief:0 restores the newest checkpoint' in caplog.text
  assert '`w` not finite' in caplog.text


class _LosesSession(tf1.train.SessionRunHook):
  """Loses the session before the next run, once it is told to."""

  is_due = False

  def before_run(self, run_context):
    if self.is_due:
      self.is_due = False
      raise tf.errors.UnavailableError(None, None, 'lost')


def _delete(model_dir, pattern):
  for path in model_dir.glob(pattern):
    path.unlink()


@pytest.mark.parametrize('spoil, step', (
    (lambda model_dir: acts.damage(str(model_dir)), 10),
    (lambda model_dir: _delete(model_dir, 'model.ckpt-20.*'), 10),
    (lambda model_dir: _delete(model_dir, 'checkpoint'), 20)),
                         ids=('cut', 'deleted', 'unnamed'))
def test_a_lost_session_continues_from_the_newest_fit_checkpoint(
    behavior, chief_server, tmp_path, caplog, spoil, step):
  hook = _LosesSession()
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    chief = _Chief(tmp_path, save_checkpoint_steps=10, hooks=[hook])
    chief.run(25)
    spoil(tmp_path)
    chief.poison()
    hook.is_due = True
    assert chief.run(1) == step + 1.0
  assert f'Training continues from {tmp_path}/model.ckpt-{step}' in caplog.text


def test_a_lost_session_without_a_fit_checkpoint_says_so(
    behavior, chief_server, tmp_path):
  hook = _LosesSession()
  with tf.Graph().as_default():
    chief = _Chief(tmp_path, hooks=[hook])
    chief.run(5)
    acts.damage(str(tmp_path))
    chief.poison()
    hook.is_due = True
    with pytest.raises(ValueError, match='must have no checkpoint, or a whole'):
      chief.run(1)


class _InitFn:
  """Raises the errors in turn, half-way, and then loads weights."""

  def __init__(self, *errors):
    self._errors = list(errors)

  def __call__(self, load):
    if self._errors:
      raise self._errors.pop(0)
    load()


def test_an_init_fn_that_was_interrupted_is_called_again(
    behavior, chief_server, tmp_path, caplog):
  # The variables are initialised, but hold no weights.
  init_fn = _InitFn(RuntimeError('killed'))
  with tf.Graph().as_default(), pytest.raises(RuntimeError, match='killed'):
    _Chief(tmp_path, init_fn=init_fn)
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    assert _Chief(tmp_path, init_fn=init_fn).run(1) == 101.0
  assert ('chief:0 restores the newest checkpoint, or initialises the '
          'variables if there is none: the parameter servers hold a state that '
          'was not completely prepared.') in caplog.text
  with tf.Graph().as_default():
    assert _Chief(tmp_path, init_fn=init_fn).run(1) == 102.0


@pytest.mark.parametrize('error', [
    tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_session_that_is_lost_in_an_init_fn_calls_it_again(
    behavior, chief_server, tmp_path, error):
  with tf.Graph().as_default():
    assert _Chief(tmp_path, init_fn=_InitFn(
        error(None, None, 'lost'))).run(1) == 101.0


def test_a_restore_that_was_interrupted_is_made_again(
    behavior, chief_server, tmp_path, monkeypatch, caplog):
  with tf.Graph().as_default():
    chief = _Chief(tmp_path)
    chief.run(5)
    chief.poison()
  with monkeypatch.context() as context, tf.Graph().as_default():
    restore = tf1.train.Saver.restore

    def restore_and_die(*args):
      restore(*args)
      raise RuntimeError('killed')

    context.setattr(tf1.train.Saver, 'restore', restore_and_die)
    with pytest.raises(RuntimeError, match='killed'):
      _Chief(tmp_path)
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    assert _Chief(tmp_path).run(1) == 1.0
  assert 'not completely prepared' in caplog.text


def test_another_model_dir_begins_anew_beside_live_parameter_servers(
    behavior, chief_server, tmp_path, caplog):
  first, second = tmp_path / 'first', tmp_path / 'second'
  with tf.Graph().as_default():
    assert _Chief(first).run(76) == 76.0
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    assert _Chief(second).run(1) == 1.0
  assert 'servers hold the state of another model_dir' in caplog.text
  assert _saved(second) == (0, 0.0)
  # Its own servers' state is gone: the first one goes on from its checkpoint.
  with tf.Graph().as_default():
    assert _Chief(first).run(1) == 1.0
  # Deleted, and made anew.
  with tf.Graph().as_default():
    _Chief(second).run(3)
  shutil.rmtree(second)
  with tf.Graph().as_default():
    assert _Chief(second).run(1) == 1.0


def test_a_model_dir_may_have_another_path(behavior, chief_server, tmp_path):
  with tf.Graph().as_default():
    assert _Chief(tmp_path / 'model').run(3) == 3.0
  (tmp_path / 'link').symlink_to(tmp_path / 'model')
  with tf.Graph().as_default():
    assert _Chief(tmp_path / 'link').run(1) == 4.0


def test_a_state_without_a_mark_is_not_taken_over(
    behavior, chief_server, tmp_path, monkeypatch, caplog):
  # As of an older tfplugin.
  with monkeypatch.context() as context, tf.Graph().as_default():
    context.setattr(run_mark.RunMark, 'write', lambda *_: None)
    assert _Chief(tmp_path, save_checkpoint_steps=2).run(5) == 5.0
  step, w = _saved(tmp_path)
  assert step == w == 4
  with caplog.at_level('WARNING', 'tensorflow'), tf.Graph().as_default():
    assert _Chief(tmp_path).run(1) == 5.0
  assert 'a state without the mark of this model_dir' in caplog.text


def test_workers_wait_for_an_init_fn_and_not_for_what_follows(
    behavior, chief_server, tmp_path, monkeypatch):
  # A `local_init_op` may wait for workers, as that of synchronous averaging.
  acts = []
  write = run_mark.RunMark.write

  def write_and_note(mark, session, number):
    acts.append(number)
    write(mark, session, number)

  manager = tf1.train.SessionManager
  local_init = manager._try_run_local_init_op

  def note_local_init(*args):
    acts.append('local_init')
    return local_init(*args)

  monkeypatch.setattr(run_mark.RunMark, 'write', write_and_note)
  monkeypatch.setattr(manager, '_try_run_local_init_op', note_local_init)
  with tf.Graph().as_default():
    _Chief(tmp_path / 'one', init_fn=_InitFn())
  run = run_mark.number_of_run(str(tmp_path / 'one'))
  assert acts == [-run, run, 'local_init', run]
  # Nobody waits for the mark without an `init_fn`, or if it is not called.
  for directory, init_fn in (('two', None), ('one', _InitFn())):
    acts.clear()
    with tf.Graph().as_default():
      _Chief(tmp_path / directory, init_fn=init_fn)
    run = run_mark.number_of_run(str(tmp_path / directory))
    assert acts == [run_mark.UNFINISHED, 'local_init', run]
