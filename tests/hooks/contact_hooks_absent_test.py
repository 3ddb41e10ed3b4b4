# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the warning about workers that do not come."""

import dataclasses

import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tfplugin import estimator as decorators
from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_task
from tfplugin.hooks import contact_hooks

tf1 = tf.compat.v1


@pytest.fixture
def task():
  """A chief of which three workers are listed, and none is there."""
  return cluster_task.ClusterTask(
      tf.train.ClusterSpec(ports.make_cluster(3, 1)), 'chief')


def _count(task, **settings):
  """Builds a model for four workers, and lets a chief count them."""
  model_fn = decorators.elastic_average(
      decorated_models.regression(), num_worker=4, **settings)
  with tf.Graph().as_default():
    tf1.train.get_or_create_global_step()
    model_fn(tf.ones([1, 2]), tf.ones([1, 1]), 'train')
    hook = contact_hooks.AbsentWorkersHook(task, 0.0)
    hook.after_create_session(None, None)
    if hook._timer is not None:
      hook._timer.join(30.0)
    hook.end(None)


def test_a_default_that_counts_absent_workers_is_told(task, caplog):
  _count(task)
  assert 'is for 4 workers, and 1 take part' in caplog.text
  assert '4 times more slowly' in caplog.text
  assert '`num_worker=1`' in caplog.text
  assert 'Missing: worker:0 at ' in caplog.text


def test_a_rate_that_was_given_and_other_tasks_are_not(task, caplog):
  _count(task, moving_rate=0.1)
  _count(dataclasses.replace(task, job='worker'))
  assert 'moving rate' not in caplog.text


def test_workers_that_are_here_are_counted(caplog):
  cluster = ports.make_cluster(1, 1)
  server = tf.distribute.Server(cluster, 'worker', 0)
  _count(cluster_task.ClusterTask(tf.train.ClusterSpec(cluster), 'chief'))
  assert 'moving rate' not in caplog.text
  del server
