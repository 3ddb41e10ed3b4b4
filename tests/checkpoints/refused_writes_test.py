# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of writes that wait for a file system."""

import errno
import os
import time

import pytest
import tensorflow as tf

from tfplugin.checkpoints import refused_writes

_READONLY = tf.errors.PermissionDeniedError(None, None,
                                            'a_file; Read-only file system')


@pytest.fixture(name='refused')
def fixture_refused(monkeypatch):
  """A write that is refused so often, and then made; nothing sleeps."""
  monkeypatch.setattr(time, 'sleep', lambda _: None)

  def make(times, error):
    errors = [error] * times

    def write():
      if errors:
        raise errors.pop()
      return 'made'
    return write

  return make


def _os_error(number):
  return OSError(number, os.strerror(number), 'a_file')


@pytest.mark.parametrize('error', [
    _READONLY, *map(_os_error, (errno.EROFS, errno.EACCES, errno.ENOSPC,
                                errno.EFBIG, errno.EDQUOT))], ids=str)
def test_a_write_waits_while_the_directory_is_refused(
    error, tmp_path, refused):
  (tmp_path / 'a').touch()
  assert refused_writes.written(refused(3, error), str(tmp_path), 'chief:0',
                                60.0) == 'made'


def test_a_save_beside_the_chief_waits(tmp_path, refused):
  (tmp_path / 'a').touch()
  write = refused(3, _READONLY)
  save = refused_writes.patient_save('worker:1', 60.0)
  assert save(lambda saver, session, save_path: write(), None, None,
              {'save_path': str(tmp_path / 'model.ckpt')}) == 'made'


@pytest.mark.parametrize('error', [_os_error(errno.ENOSPC), _READONLY],
                         ids=str)
def test_each_new_try_begins_without_the_files_of_the_one_before(
    error, tmp_path, refused):
  (tmp_path / 'a').touch()
  write, clear = refused(3, error), refused(1, error)
  tries = []

  def leave_a_file():
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / f'part.tempstate{len(tries)}').touch()
    tries.append(1)
    return write()

  def delete():
    clear()  # While the directory is closed nothing can be deleted either.
    for path in tmp_path.glob('*.tempstate*'):
      path.unlink()

  assert refused_writes.written(leave_a_file, str(tmp_path), 'chief:0', 60.0,
                                delete) == 'made'
  assert len(tries) == 4


def test_a_directory_that_stays_read_only_is_named(tmp_path, refused):
  (tmp_path / 'a').touch()
  with pytest.raises(OSError, match=(
      f'chief:0 waited 0 s to write in {tmp_path}: Read-only file system. '
      'Make it writable, and start it again.')):
    refused_writes.written(refused(9, _READONLY), str(tmp_path), 'chief:0',
                           0.0)


def test_an_empty_directory_is_refused_at_once(tmp_path, refused):
  with pytest.raises(OSError, match=(
      'model_dir must be a directory that chief:0 can write to. Received: '
      rf'{tmp_path} .Read-only file system.. Make it writable, or choose an')):
    refused_writes.written(refused(1, _READONLY), str(tmp_path), 'chief:0',
                           60.0)


def test_a_directory_that_is_missing_is_made(tmp_path):
  refused_writes.wait_until_writable(str(tmp_path / 'new'), 'chief:0', 60.0)
  assert list((tmp_path / 'new').iterdir()) == []
  refused_writes.wait_until_writable('gs://bucket/model', 'chief:0', 60.0)


def test_another_error_is_raised_at_once(tmp_path, refused):
  (tmp_path / 'a').touch()
  with pytest.raises(tf.errors.OutOfRangeError):
    refused_writes.written(refused(1, tf.errors.OutOfRangeError(
        None, None, 'End of sequence')), str(tmp_path), 'chief:0', 60.0)
