# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hook's limit and end; what it does is refused_runs_test.py's."""

from __future__ import annotations

import threading

import pytest
import tensorflow as tf

from tfplugin import hooks
from tfplugin.distribute.sessions import refused_runs

tf1 = tf.compat.v1


def test_a_session_of_this_process_alone_is_not_watched():
  """It refuses nothing, and a SingularMonitoredSession would not go on."""
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    with tf1.train.SingularMonitoredSession(
        [hooks.RefusedStepHook()]) as session:
      assert session.run(step) == 0
      assert refused_runs.WATCH not in {
          thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize('limit, error', [
    ('1', TypeError), (True, TypeError), (0, ValueError), (-1.0, ValueError),
    (float('inf'), ValueError)])
def test_a_limit_is_a_positive_number(limit, error):
  with pytest.raises(error, match='`time_limit_secs` must be'):
    hooks.RefusedStepHook(limit)
