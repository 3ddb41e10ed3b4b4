# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the device filters of training sessions.

Clusters with an absent worker: `distributed/launchers_test.py`.
"""

import pytest
import tensorflow as tf

from tfplugin.distribute import cluster_task
from tfplugin.distribute.sessions import server_options

tf1 = tf.compat.v1

_CLUSTER = {'ps': ['a:1'], 'chief': ['b:1'], 'worker': ['c:1', 'd:1']}


def _filters(job, index, config, device='', cluster=None):
  task = cluster_task.ClusterTask(
      tf.train.ClusterSpec(cluster or _CLUSTER), job, index)
  with tf.Graph().as_default():
    with tf1.device('/job:ps/task:0'):
      tf1.get_variable('v', [])
    with tf1.device(device):
      tf.constant(1.0)
    found = server_options.with_filters(task, config)
  return found and list(found.device_filters)


@pytest.mark.parametrize('job, index', [('chief', 0), ('worker', 1)])
@pytest.mark.parametrize('is_placed', [True, False])
def test_a_session_sees_servers_and_its_own_task(job, index, is_placed):
  own = f'/job:{job}/task:{index}'
  assert _filters(job, index, tf1.ConfigProto(),
                  own if is_placed else '') == ['/job:ps', own]


def test_other_settings_stay():
  config = tf1.ConfigProto(allow_soft_placement=True)
  task = cluster_task.ClusterTask(tf.train.ClusterSpec(_CLUSTER), 'chief', 0)
  with tf.Graph().as_default():
    found = server_options.with_filters(task, config)
  assert found.allow_soft_placement and not config.device_filters


@pytest.mark.parametrize('device', ['/job:worker/task:0', '/job:chief'])
def test_a_graph_with_ops_on_another_task_needs_that_task(device):
  assert _filters('worker', 1, tf1.ConfigProto(), device) == []


def test_filters_of_the_program_and_no_settings_stay():
  own = tf1.ConfigProto(device_filters=['/job:ps', '/job:worker'])
  assert _filters('chief', 0, own) == ['/job:ps', '/job:worker']
  assert _filters('chief', 0, None) is None


def test_without_servers_tasks_need_each_other():
  assert _filters('worker', 1, tf1.ConfigProto(), cluster={
      'chief': ['b:1'], 'worker': ['c:1', 'd:1']}) == []
