# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of a checkpoint, on damaged files."""

import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files

tf1 = tf.compat.v1

_DATA = 'model.ckpt-20.data-00000-of-00001'


def _save(directory, steps, **values):
  """Saves the same values at each of the steps, with one Saver."""
  with tf.Graph().as_default(), tf1.Session() as session:
    for name, value in values.items():
      tf1.get_variable(name, initializer=value)
    session.run(tf1.global_variables_initializer())
    saver = tf1.train.Saver(save_relative_paths=True)
    for step in steps:
      saver.save(session, f'{directory}/model.ckpt', step)


@pytest.fixture
def directory(tmp_path):
  """A directory with whole checkpoints of the steps 10 and 20."""
  _save(tmp_path, [10, 20], w=np.arange(1000, dtype=np.float32))
  return tmp_path


def _truncate(directory):
  path = directory / _DATA
  os.truncate(path, path.stat().st_size // 2)


def _flip_a_bit(directory):
  path = directory / _DATA
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)


def _empty(directory):
  (directory / _DATA).write_bytes(b'')


def _empty_index(directory):
  (directory / 'model.ckpt-20.index').write_bytes(b'')


def _no_data(directory):
  (directory / _DATA).unlink()


def _no_index(directory):
  (directory / 'model.ckpt-20.index').unlink()


def _nan(directory):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('w', initializer=[1.0, np.nan])
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, f'{directory}/model.ckpt', 20,
                           write_state=False)


def _latest(directory):
  return tf1.train.latest_checkpoint(str(directory))


def _listed(directory):
  state = tf1.train.get_checkpoint_state(str(directory))
  return [os.path.basename(path) for path in state.all_model_checkpoint_paths]


@pytest.mark.parametrize('damage', [
    _truncate, _flip_a_bit, _empty, _empty_index, _no_data, _no_index, _nan])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    damage, directory, caplog):
  damage(directory)
  files = sorted(path.name for path in directory.iterdir())
  with caplog.at_level('WARNING', 'tensorflow'):
    found = checkpoint_files.fall_back(str(directory))
  assert found == f'{directory}/model.ckpt-10'
  assert _latest(directory) == found
  (record,) = caplog.records
  assert 'model.ckpt-20' in record.getMessage()
  assert 'model.ckpt-10' in record.getMessage()
  # The damaged one stays for whoever wants to look into it.
  assert sorted(path.name for path in directory.iterdir()) == files


def test_a_whole_checkpoint_is_left_in_its_place(directory, caplog):
  before = (directory / 'checkpoint').read_bytes()
  with caplog.at_level('WARNING', 'tensorflow'):
    assert checkpoint_files.fall_back(str(directory)) == (
        f'{directory}/model.ckpt-20')
  assert (directory / 'checkpoint').read_bytes() == before
  assert not caplog.records


def test_an_older_checkpoint_that_a_user_has_named_stays_the_newest(directory):
  tf1.train.update_checkpoint_state(str(directory),
                                    f'{directory}/model.ckpt-10')
  assert checkpoint_files.fall_back(str(directory)) == (
      f'{directory}/model.ckpt-10')


@pytest.mark.parametrize('content', [None, '', 'model_checkpoint_path: "m'])
def test_without_the_file_that_names_them_the_newest_is_found(
    directory, caplog, content):
  _save(directory, [100], w=1.0)  # Behind 20 in the order of the alphabet.
  (directory / 'checkpoint').unlink()
  if content is not None:  # After a crash of the host.
    (directory / 'checkpoint').write_text(content)
  with caplog.at_level('WARNING', 'tensorflow'):
    found = checkpoint_files.fall_back(str(directory))
  assert found == f'{directory}/model.ckpt-100' == _latest(directory)
  assert 'has no whole file `checkpoint`' in caplog.text
  # Nobody knows which of them a Saver may delete: it deletes none.
  assert not _listed(directory)


def test_a_checkpoint_of_another_saver_does_not_begin_a_training(tmp_path):
  _save(tmp_path, [10], w=1.0)
  for path in tmp_path.glob('*'):
    path.rename(tmp_path / path.name.replace('model.', 'best.'))
  (tmp_path / 'checkpoint').unlink()
  assert checkpoint_files.fall_back(str(tmp_path)) is None


def test_only_what_was_listed_may_a_saver_delete_later(directory):
  # 5 was a milestone, `best` is of another Saver and newer, and 12 is gone.
  _save(directory, [5, 12, 10, 20], w=1.0)
  for path in directory.glob('model.ckpt-12*'):
    path.unlink()
  tf1.train.update_checkpoint_state(
      str(directory), 'model.ckpt-20', ['model.ckpt-12', 'model.ckpt-10'])
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('w', initializer=1.0)
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, f'{directory}/best.ckpt', 15,
                           write_state=False)
  _truncate(directory)
  assert checkpoint_files.fall_back(str(directory)).endswith('model.ckpt-10')
  assert _listed(directory) == ['model.ckpt-10']


def test_a_milestone_to_continue_from_is_named_and_not_listed(directory):
  tf1.train.update_checkpoint_state(str(directory), 'model.ckpt-20')
  _truncate(directory)
  assert checkpoint_files.fall_back(str(directory)).endswith('model.ckpt-10')
  assert _latest(directory).endswith('model.ckpt-10')
  assert not _listed(directory)


def test_the_directory_may_move_afterwards(directory, tmp_path_factory):
  _truncate(directory)
  checkpoint_files.fall_back(str(directory))
  moved = tmp_path_factory.mktemp('elsewhere') / 'model'
  directory.rename(moved)
  assert _latest(moved) == f'{moved}/model.ckpt-10'


def test_no_checkpoint_at_all_is_none(tmp_path):
  assert checkpoint_files.fall_back(str(tmp_path)) is None
  assert checkpoint_files.fall_back(str(tmp_path / 'absent')) is None
  assert not list(tmp_path.iterdir())


def test_no_fit_checkpoint_is_an_error_that_names_each(directory):
  for path in directory.glob('*.data-*'):
    path.write_bytes(b'')
  with pytest.raises(ValueError, match=(
      r'(?s)ckpt-20 cannot be used.*ckpt-10 cannot be.*move these files away')):
    checkpoint_files.fall_back(str(directory))


@pytest.mark.parametrize('value', [
    np.float64(1), np.int64(1), True, 'text', np.complex64(1j),
    tf.bfloat16.as_numpy_dtype(1), np.float16(1)])
def test_values_of_every_type_are_read(tmp_path, value):
  _save(tmp_path, [1], w=value)
  assert checkpoint_files.defect(f'{tmp_path}/model.ckpt-1') is None


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16', 'float64',
                                   'complex64'])
@pytest.mark.parametrize('value', ['nan', 'inf', '-inf'])
def test_what_is_not_finite_is_named(tmp_path, dtype, value):
  value = np.array(float(value)).astype(tf.as_dtype(dtype).as_numpy_dtype)
  _save(tmp_path, [1], good=1.0, bad=value)
  assert checkpoint_files.defect(f'{tmp_path}/model.ckpt-1') == (
      '`bad` is not finite')


def test_what_a_killed_save_has_left_is_deleted(directory):
  kept = {path.name for path in directory.iterdir()}
  parts = directory / 'model.ckpt-30_temp'
  parts.mkdir()
  (parts / 'part-00000-of-00001.index').write_text('half')
  for name in ('model.ckpt-30.data-00000-of-00001.tempstate1234567',
               'checkpoint.tmp0123456789abcdef'):
    (directory / name).write_text('half')
  # Somebody else's.
  for name in ('my_temp', 'graph.pbtxt', 'checkpoint_notes'):
    (directory / name).write_text('mine')
    kept.add(name)
  removed = checkpoint_files.remove_left_behind(str(directory))
  assert len(removed) == 3
  assert {path.name for path in pathlib.Path(directory).iterdir()} == kept
