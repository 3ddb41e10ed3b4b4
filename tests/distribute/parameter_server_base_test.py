# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the parameter-server strategies share: counting and refusing."""

import pytest
import tensorflow as tf

from tfplugin.distribute import parameter_server_base as base

CLUSTER = tf.train.ClusterSpec({
    'chief': ['a:1'], 'worker': ['b:1', 'c:1'], 'ps': ['d:1', 'e:1']})


def test_workers_are_counted_with_the_chief():
  assert base.count_workers(CLUSTER) == 3
  assert base.count_workers(tf.train.ClusterSpec({'worker': ['a:1']})) == 1
  assert base.count_workers(None) == 1


@pytest.mark.parametrize('task, index', [
    (('chief', 0), 0), (('worker', 0), 1), (('worker', 1), 2)])
def test_worker_index_counts_from_the_chief(task, index):
  assert base.worker_index(CLUSTER, *task) == index


def test_worker_index_of_a_ps_raises():
  with pytest.raises(ValueError, match='ps'):
    base.worker_index(CLUSTER, 'ps', 0)


def test_reduction_towards_tensors_is_no_optimizers():
  variable = tf.Variable(1.0)
  assert base.updates_variables([(1.0, variable)])
  assert not base.updates_variables([(1.0, variable), (1.0, tf.ones([]))])
