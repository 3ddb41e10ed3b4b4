# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of writes that wait for a file system."""

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


def _holds_a_checkpoint(directory):
  with tf.compat.v1.Session(graph=tf.Graph()) as session:
    tf.compat.v1.get_variable('v', initializer=1.0)
    session.run(tf.compat.v1.global_variables_initializer())
    tf.compat.v1.train.Saver().save(session, str(directory / 'model.ckpt'), 1)


def test_a_write_waits_while_the_directory_is_read_only(tmp_path, refused):
  _holds_a_checkpoint(tmp_path)
  assert refused_writes.written(refused(3, _READONLY), str(tmp_path), 'chief:0',
                                60.0) == 'made'


def test_a_directory_that_stays_read_only_is_named(tmp_path, refused):
  _holds_a_checkpoint(tmp_path)
  with pytest.raises(OSError, match=(
      f'chief:0 waited 0 s to write in {tmp_path}: Read-only file system. '
      'Make it writable, and start it again.')):
    refused_writes.written(refused(9, _READONLY), str(tmp_path), 'chief:0',
                           0.0)


def test_a_directory_without_a_checkpoint_is_refused_at_once(tmp_path, refused):
  with pytest.raises(tf.errors.PermissionDeniedError):
    refused_writes.written(refused(1, _READONLY), str(tmp_path), 'chief:0',
                           60.0)


def test_another_error_is_raised_at_once(tmp_path, refused):
  _holds_a_checkpoint(tmp_path)
  with pytest.raises(tf.errors.OutOfRangeError):
    refused_writes.written(refused(1, tf.errors.OutOfRangeError(
        None, None, 'End of sequence')), str(tmp_path), 'chief:0', 60.0)
