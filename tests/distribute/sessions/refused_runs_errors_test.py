# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors of runs that have lost a part."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import hooks

tf1 = tf.compat.v1

# As TensorFlow 2.15 puts the errors of two parts together, and its newest logs.
_OF_TWO_PARTS = """Graph execution error:

=====================
CANCELLED: From /job:worker/replica:0/task:1:
RecvFromRemoteAsync is cancelled.
Recent warning and error logs:
  UNAVAILABLE: Connection reset by peer
{}=====================
"""


@pytest.mark.parametrize('other, is_loss', [
    ('ABORTED: From /job:ps/replica:0/task:0:\nreceived twice\n', True),
    ('UNAVAILABLE: failed to connect to all addresses\n', True),
    ('', False)])
def test_a_cancelled_step_that_lost_a_part_is_made_again(other, is_loss):
  """TensorFlow chooses between the classes of the parts by chance."""
  errors = [_OF_TWO_PARTS.format(other)]

  class Fed:

    def __array__(self, *args, **kwargs):
      if errors:
        raise tf.errors.CancelledError(None, None, errors.pop())
      return np.array(7.0, np.float32)

  class Feeds(tf1.train.SessionRunHook):
    count = 0

    def after_create_session(self, session, coord):
      self.count += 1

    def before_run(self, run_context):
      return tf1.train.SessionRunArgs(fed, {fed: Fed()})

  feeds = Feeds()
  with tf.Graph().as_default(), contextlib.ExitStack() as stack:
    fed = tf1.placeholder(tf.float32, [])
    train_op = tf1.train.get_or_create_global_step().assign_add(1)
    if not is_loss:
      stack.enter_context(pytest.raises(tf.errors.CancelledError))
    with tf1.train.MonitoredTrainingSession(
        hooks=[feeds, hooks.RefusedStepHook()]) as session:
      assert session.run(train_op) == 1
  assert feeds.count == (2 if is_loss else 1)
