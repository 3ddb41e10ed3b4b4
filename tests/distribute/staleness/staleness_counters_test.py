# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the counters of dropped and applied gradients."""

import pytest
import tensorflow as tf

from tfplugin.distribute.staleness import staleness_counters

tf1 = tf.compat.v1


def test_stale_counter_sits_beside_the_step_the_others_on_the_worker(behavior):
  with tf.Graph().as_default():
    with tf1.device('/job:ps/task:1'):
      step = tf1.train.get_or_create_global_step()
    counters = staleness_counters.StalenessCounters('Drop')
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
      counters.create(step, '/job:worker/task:0')
    here = counters.for_current_graph()
    # A colocated ref or resource has the device of the op it sits with.
    groups = here.stale_counter.op.colocation_groups()
    assert (here.stale_counter.device == '/job:ps/task:1'
            or b'loc:@global_step' in groups)
    assert here.num_dropped.variable.device == '/job:worker/task:0'
    assert here.num_applied.variable.device == '/job:worker/task:0'


def test_names_inside_a_variable_scope_are_those_of_old_checkpoints(behavior):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    counters = staleness_counters.StalenessCounters('Drop')
    with tf1.variable_scope('model', reuse=tf1.AUTO_REUSE):
      counters.create(step)
    assert [v.op.name for v in counters.variables()] == [
        'model/stale_counter', 'Drop/num_dropped', 'Drop/num_applied']


def test_each_graph_has_its_own(behavior):
  counters = staleness_counters.StalenessCounters('Drop')
  seen = []
  for _ in range(2):
    with tf.Graph().as_default():
      step = tf1.train.get_or_create_global_step()
      counters.create(step)
      counters.create(step)
      seen.append(counters.for_current_graph().stale_counter)
      assert len(tf1.global_variables()) == 2
  assert seen[0] is not seen[1]


def test_reading_before_creation_names_the_call(behavior):
  with tf.Graph().as_default():
    counters = staleness_counters.StalenessCounters('Drop')
    assert counters.variables() == []
    with pytest.raises(RuntimeError, match='call .minimize'):
      counters.for_current_graph()
