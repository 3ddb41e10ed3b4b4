# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of strategies in a cluster whose workers have numbers."""

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import cluster_config

_NUMBERED = {'chief': ['127.0.0.1:21001'], 'ps': ['127.0.0.1:21002'],
             'worker': {1: '127.0.0.1:21003', 3: '127.0.0.1:21004'}}


@pytest.mark.parametrize('task, pipeline', (
    (cluster_config.Task('chief', 0), 0), (cluster_config.Task('worker', 1), 1),
    (cluster_config.Task('worker', 3), 2)))
@pytest.mark.parametrize('make', [
    lambda: distribute.DropStaleGradientStrategy(staleness=1),
    distribute.ElasticAverageStrategy])
def test_workers_with_numbers_divide_the_input_without_gaps(
    monkeypatch, make, task, pipeline):
  contexts = []

  def input_fn(context):
    contexts.append(context)
    return tf.data.Dataset.from_tensors(1.0)

  monkeypatch.setenv('TF_CONFIG', cluster_config.encode(_NUMBERED, task))
  with tf.Graph().as_default():
    make().make_input_fn_iterator(input_fn)
  [context] = contexts
  assert context.input_pipeline_id == pipeline
  assert context.num_input_pipelines == 3


def test_a_strategy_refuses_numbered_workers_without_a_first_one(monkeypatch):
  cluster = {key: _NUMBERED[key] for key in ('ps', 'worker')}
  monkeypatch.setenv('TF_CONFIG', cluster_config.encode(
      cluster, cluster_config.Task('worker', 3)))
  with pytest.raises(ValueError, match=(
      'must have a chief or worker:0 for a strategy.*Rename worker:1')):
    distribute.ElasticAverageStrategy()
