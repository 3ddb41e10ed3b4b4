# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of starts and saves under faults, with real files and servers."""

import logging
import resource
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.hooks import checkpoint_guard_hook

tf1 = tf.compat.v1


def _model_fn(features, labels, mode, params):
  """w = 0, 1, 2, ...; from the step `params['nan_from']` on it is a NaN."""
  del features, labels
  step = tf1.train.get_or_create_global_step()
  w = tf1.get_variable('w', initializer=0.0)
  tf1.get_variable('large', [params.get('size', 1)])
  bad = tf.cast(step, tf.int64) >= params.get('nan_from', 10**6)
  with tf.control_dependencies([tf1.assign_add(step, 1)]):
    train_op = tf1.assign_add(w, tf.where(bad, np.nan, 1.0))
  return tf.estimator.EstimatorSpec(mode, loss=tf.constant(1.0),
                                    train_op=train_op)


def _train(model_dir, steps, hook=True, keep_checkpoint_max=5,
           keep_checkpoint_every_n_hours=10000, **params):
  config = tf.estimator.RunConfig(
      str(model_dir), save_checkpoints_steps=2, log_step_count_steps=None,
      keep_checkpoint_max=keep_checkpoint_max,
      keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours)
  hooks = [checkpoint_guard_hook.CheckpointGuardHook(
      config, space_limit_secs=params.get('limit', 60))] if hook else []
  estimator = tf.estimator.Estimator(_model_fn, config=config, params=params)
  estimator.train(lambda: tf.data.Dataset.from_tensors(0).repeat(), hooks,
                  max_steps=steps)
  return estimator


def _saved(model_dir):
  """Returns step and w of the newest checkpoint."""
  reader = tf.train.load_checkpoint(str(model_dir))
  return reader.get_tensor('global_step'), reader.get_tensor('w')


def test_a_nan_is_not_saved_and_named(behavior, tmp_path, caplog):
  # Of the last state nothing remains, and the program is told.
  with caplog.at_level('ERROR', 'tensorflow'), pytest.raises(
      RuntimeError, match='last step cannot be saved. worker:0 does not save '
                          r'step 7: `w` .* newest .*ckpt-2\. Start again'):
    _train(tmp_path, 7, nan_from=3)
  assert _saved(tmp_path) == (2, 2.0)
  assert tf1.train.get_checkpoint_state(
      str(tmp_path)).all_model_checkpoint_paths[-1].endswith('-2')
  assert not list(tmp_path.glob('model.ckpt-4*'))
  message = caplog.records[0].getMessage()
  assert 'worker:0 does not save step 4: `w` holds a NaN' in message
  assert 'model.ckpt-2.' in message
  # The next start goes on from there.
  assert _train(tmp_path, 4).get_variable_value('w') == 4.0


def test_without_the_hook_the_nan_is_saved(behavior, tmp_path):
  _train(tmp_path, 4, hook=False, nan_from=3)
  step, w = _saved(tmp_path)
  assert step == 4 and np.isnan(w)
  # A start with the hook then goes on from the one before: 2, 3, 4, 5.
  assert _train(tmp_path, 5).get_variable_value('w') == 5.0


def test_a_graph_without_a_step_is_a_clear_error(tmp_path):
  hook = checkpoint_guard_hook.CheckpointGuardHook(
      tf.estimator.RunConfig(str(tmp_path)))
  with tf.Graph().as_default(), pytest.raises(
      RuntimeError, match='CheckpointGuardHook needs a global step: call'):
    hook.begin()


class _StopListener(tf1.train.CheckpointSaverListener):

  def after_save(self, session, global_step):
    return global_step >= 4


@pytest.mark.parametrize('guard_is_first', [True, False])
def test_a_listener_ends_the_training_with_the_step_of_its_save(
    behavior, tmp_path, guard_is_first):
  # Like a listener of the hook that saves, whichever hook comes first.
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    advance = tf1.assign_add(step, 1)
    hooks = [
        checkpoint_guard_hook.CheckpointGuardHook(
            tf.estimator.RunConfig(str(tmp_path)),
            listeners=[_StopListener()]),
        tf1.train.CheckpointSaverHook(str(tmp_path), save_steps=2)]
    with tf1.train.SingularMonitoredSession(
        hooks=hooks if guard_is_first else hooks[::-1]) as session:
      while not session.should_stop():
        session.run(advance)
  assert tf1.train.load_checkpoint(str(tmp_path)).get_tensor('global_step') == 4


class _LostServerHook(tf1.train.SessionRunHook):
  """Loses the session once, as when a ps dies while it writes its part."""

  def __init__(self, part):
    self._part = part
    self._is_lost = False

  def after_run(self, run_context, run_values):
    if not self._is_lost:
      self._is_lost = True
      self._part.parent.mkdir()
      self._part.write_bytes(b'half')
      raise tf.errors.AbortedError(None, None, 'a server is lost')


def test_a_session_that_is_made_anew_deletes_what_a_dead_server_left(tmp_path):
  part = tmp_path / 'model.ckpt-2_temp' / 'part-00000-of-00002.data-00000-of-1'
  hook = _LostServerHook(part)
  config = tf.estimator.RunConfig(str(tmp_path), save_checkpoints_steps=2)
  estimator = tf.estimator.Estimator(_model_fn, config=config, params={})
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(0).repeat(),
      [checkpoint_guard_hook.CheckpointGuardHook(config), hook], max_steps=4)
  assert _saved(tmp_path) == (4, 4.0)
  assert not part.parent.exists()


def test_a_start_falls_back_behind_a_damaged_checkpoint(behavior, tmp_path):
  _train(tmp_path, 6)
  (tmp_path / 'model.ckpt-6.data-00000-of-00001').write_bytes(b'')
  estimator = _train(tmp_path, 7)
  # From 4 on, one at a time: 4, 5, 6, 7.
  assert _saved(tmp_path) == (7, 7.0)
  assert estimator.latest_checkpoint().endswith('-7')


def test_after_a_fall_back_milestones_and_foreign_files_stay(
    behavior, tmp_path):
  _train(tmp_path, 8, keep_checkpoint_max=2, keep_checkpoint_every_n_hours=1e-9)
  _train(tmp_path, 11, keep_checkpoint_max=2)
  for path in tmp_path.glob('model.ckpt-2.*'):
    shutil.copy(path, tmp_path / path.name.replace('model.ckpt-2', 'best-3'))
  kept = {path.name for path in tmp_path.glob('*-[234].*')}
  assert sum(name.endswith('.index') for name in kept) == 3
  (tmp_path / 'model.ckpt-11.data-00000-of-00001').write_bytes(b'')
  _train(tmp_path, 30, keep_checkpoint_max=2)
  assert _saved(tmp_path) == (30, 30.0)
  assert kept <= {path.name for path in tmp_path.iterdir()}
  assert not list(tmp_path.glob('model.ckpt-1[048]*'))  # The others go.
  assert list(tmp_path.glob('model.ckpt-11*'))


def test_checkpoints_are_kept_and_deleted_as_without(behavior, tmp_path):
  _train(tmp_path / 'with', 16)
  _train(tmp_path / 'without', 16, hook=False)
  with_, without = (sorted(path.name for path in (tmp_path / name).iterdir()
                           if not path.name.startswith('events'))
                    for name in ('with', 'without'))
  assert with_ == without
  assert ((tmp_path / 'with/checkpoint').read_text() ==
          (tmp_path / 'without/checkpoint').read_text())


class _Disk(logging.Handler):
  """Files of this process may have so many bytes, until somebody complains."""

  def __init__(self, limit):
    super().__init__()
    self._limit = limit
    self.complaints = []

  def __enter__(self):
    self._before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, self._before[1]))
    tf.get_logger().addHandler(self)
    return self

  def __exit__(self, *unused):
    tf.get_logger().removeHandler(self)
    resource.setrlimit(resource.RLIMIT_FSIZE, self._before)

  def emit(self, record):
    if 'waits for space' in record.getMessage():
      self.complaints.append(record.getMessage())
      resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


def test_a_save_waits_for_space(behavior, tmp_path):
  with _Disk(100_000) as disk:
    _train(tmp_path, 3, size=100_000)  # 400 kB
  assert _saved(tmp_path) == (3, 3.0)
  assert len(disk.complaints) == 1
  assert f'worker:0 waits for space to save in {tmp_path}' in disk.complaints[0]
  assert not list(tmp_path.glob('*_temp'))


def test_a_disk_that_stays_full_is_an_error_and_not_the_end_of_the_input(
    behavior, tmp_path, monkeypatch):
  monkeypatch.setattr(_Disk, 'emit', lambda *_: None)
  with _Disk(100_000), pytest.raises(OSError, match=(
      r'worker:0 waited 0.1 s for space to save in .*: File too large. Make ')):
    _train(tmp_path, 3, size=100_000, limit=0.1)
