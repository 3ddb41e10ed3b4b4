# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training in a cluster without a parameter server, where tasks are peers."""

import json
import sys
import threading

import pytest
import tensorflow as tf

from tfplugin.estimator import cluster_training
from tfplugin.hooks.shutdown import lost_peers


def _run(model_dir):
  def input_fn():
    return tf.data.Dataset.from_tensors(1.0)

  return cluster_training.train_and_evaluate(
      tf.estimator.Estimator(lambda features: None, str(model_dir)),
      tf.estimator.TrainSpec(input_fn), tf.estimator.EvalSpec(input_fn))


@pytest.fixture(name='cluster', autouse=True)
def fixture_cluster(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['localhost:1'], 'worker': ['localhost:2']},
      'task': {'type': 'chief', 'index': 0}}))


def test_without_ps_there_is_no_listener(monkeypatch, tmp_path):
  # TensorFlow's strategies for such a cluster refuse any.
  specs = []
  monkeypatch.setattr(tf.estimator, 'train_and_evaluate',
                      lambda estimator, train_spec, _: specs.append(train_spec))
  _run(tmp_path)
  assert not specs[0].saving_listeners


def test_a_training_that_fails_leaves_no_watch_that_ends_the_process(
    monkeypatch, tmp_path):
  def fail(estimator, train_spec, eval_spec):
    hook, = (hook for hook in train_spec.hooks
             if isinstance(hook, lost_peers.LostPeersHook))
    with tf.Graph().as_default():
      hook.begin()
    raise ValueError('no such file')

  monkeypatch.setattr(tf.estimator, 'train_and_evaluate', fail)
  with pytest.raises(ValueError, match='no such file'):
    _run(tmp_path)
  for watch in [thread for thread in threading.enumerate()
                if thread.name == lost_peers.WATCH]:
    watch.join(60.0)
    assert not watch.is_alive()


def test_an_error_of_horovod_names_the_task_that_is_lost(
    monkeypatch, tmp_path):
  def fail(estimator, train_spec, eval_spec):
    raise tf.errors.UnknownError(None, None, 'Horovod has been shut down.')

  monkeypatch.setattr(tf.estimator, 'train_and_evaluate', fail)
  monkeypatch.setattr(sys, 'excepthook', sys.excepthook)
  with pytest.raises(lost_peers.LostPeerError, match='chief:0 lost'):
    _run(tmp_path)
