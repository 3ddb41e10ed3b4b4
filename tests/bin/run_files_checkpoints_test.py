# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the check of a model_dir: whole, corrupt, foreign."""

import hashlib

import pytest
import tensorflow as tf

from tfplugin.bin import run_files

tf1 = tf.compat.v1

_EXPECTED = {'global_step': [], 'kernel': [2, 3]}


def _save(directory, shape=(2, 3), name='kernel', step=7):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.create_global_step()
    tf1.get_variable(name, shape)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.assign(tf1.train.get_global_step(), step))
    tf1.train.Saver().save(session, str(directory / 'model.ckpt'), step)


def _contents(directory):
  return {p.name: hashlib.sha256(p.read_bytes()).hexdigest()
          for p in directory.iterdir()}


def _refused(directory, message):
  before = _contents(directory)
  with pytest.raises(ValueError, match=message):
    run_files.check_model_dir(directory, _EXPECTED)
  assert _contents(directory) == before


def test_a_whole_checkpoint_has_its_step(tmp_path):
  _save(tmp_path)
  assert run_files.check_model_dir(tmp_path, _EXPECTED) == 7
  assert run_files.global_step(tmp_path) == 7


def test_without_a_checkpoint_there_is_no_step(tmp_path):
  assert run_files.check_model_dir(tmp_path, _EXPECTED) is None
  assert run_files.check_model_dir(tmp_path / 'new', _EXPECTED) is None
  assert not (tmp_path / 'new').exists()


def test_a_flipped_byte_is_found(tmp_path):
  _save(tmp_path)
  data, = tmp_path.glob('*.data-*')
  content = bytearray(data.read_bytes())
  content[5] ^= 255
  data.write_bytes(content)
  _refused(tmp_path, 'cannot be read(.|\n)*Nothing was changed')


def test_a_truncated_checkpoint_is_found(tmp_path):
  _save(tmp_path)
  data, = tmp_path.glob('*.data-*')
  data.write_bytes(data.read_bytes()[:8])
  _refused(tmp_path, 'cannot be read')


def test_a_damaged_index_is_found(tmp_path):
  _save(tmp_path)
  index, = tmp_path.glob('*.index')
  index.write_bytes(b'nonsense')
  _refused(tmp_path, 'cannot be read')


def test_a_list_of_nothing_is_found(tmp_path):
  _save(tmp_path)
  for path in tmp_path.glob('model.ckpt-*'):
    path.unlink()
  _refused(tmp_path, 'cannot be read')


def test_a_list_that_is_missing_is_not_missed(tmp_path):
  _save(tmp_path)
  (tmp_path / 'checkpoint').unlink()
  before = _contents(tmp_path)
  assert run_files.check_model_dir(tmp_path, _EXPECTED) == 7
  assert _contents(tmp_path) == before


def test_a_damaged_checkpoint_gives_way_to_an_older_one(tmp_path):
  _save(tmp_path)
  _save(tmp_path, step=9)
  data, = tmp_path.glob('model.ckpt-9.data-*')
  data.write_bytes(b'')
  assert run_files.check_model_dir(tmp_path, _EXPECTED) == 7


def test_another_models_checkpoint_is_refused(tmp_path):
  _save(tmp_path, name='embedding')
  _refused(tmp_path, 'one of this model.*`kernel` is missing')


def test_another_shape_is_refused(tmp_path):
  _save(tmp_path, shape=(4, 3))
  _refused(tmp_path, r'`kernel` has the shape \[4, 3\] where \[2, 3\]')


def test_a_file_is_no_model_dir(tmp_path):
  path = tmp_path / 'file'
  path.write_text('')
  with pytest.raises(ValueError, match='must be a directory'):
    run_files.check_model_dir(path, _EXPECTED)


def test_the_expected_variables_are_those_of_evaluation():
  def model_fn(features, labels, mode, params):
    assert mode == tf.estimator.ModeKeys.EVAL
    del labels, params
    kernel = tf1.get_variable('kernel', [features.shape[-1], 3])
    tf1.metrics.mean(kernel)  # Local variables, which are not saved.

  shapes = run_files.variable_shapes(
      model_fn, [[1.0, 2.0]], [0], tf.estimator.ModeKeys.EVAL, {})
  assert shapes == _EXPECTED


def test_training_needs_its_whole_state(tmp_path):
  _save(tmp_path)
  run_files.check_training_state(tmp_path, _EXPECTED, 'now', 'before')
  contents = _contents(tmp_path)
  with pytest.raises(ValueError, match=(
      'training state of now. Received: .*model.ckpt-7 of before, where '
      '`slot` is missing')):
    run_files.check_training_state(
        tmp_path, {**_EXPECTED, 'slot': [2, 3]}, 'now', 'before')
  assert _contents(tmp_path) == contents
