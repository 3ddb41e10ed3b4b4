# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which devices of a process have copies of their own."""

import pytest
import tensorflow as tf

from tfplugin import distribute


@pytest.mark.parametrize('devices, count', (
    (None, 1), (['/cpu:0', '/cpu:1'], 2), (['/cpu:0', '/cpu:1', '/cpu:2'], 3)))
def test_two_or_more_devices_have_copies(devices, count):
  strategy = distribute.ElasticAverageStrategy(devices=devices)
  assert strategy.extended.is_replicated == (count > 1)
  # Outside of a device, where a batch is divided.
  assert strategy.num_replicas_in_sync == count


def test_on_a_device_there_is_nothing_to_divide_by(behavior):
  strategy = distribute.ElasticAverageStrategy(devices=['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    counts = strategy.run(lambda: strategy.num_replicas_in_sync)
    assert set(strategy.experimental_local_results(counts)) == {1}


@pytest.mark.parametrize('gpus, is_replicated', ((0, False), (1, False),
                                                 (2, True), (3, True)))
def test_gpus_have_copies_where_there_are_several(
    monkeypatch, gpus, is_replicated):
  found = {'GPU': [f'gpu{index}' for index in range(gpus)], 'CPU': ['cpu']}
  monkeypatch.setattr(tf.config, 'get_visible_devices', found.get)
  monkeypatch.setattr(
      tf.config, 'get_logical_device_configuration', lambda device: None)
  strategy = distribute.ElasticAverageStrategy()
  assert strategy.extended.is_replicated == is_replicated


def test_a_single_device_is_refused():
  with pytest.raises(ValueError, match='must name two or more devices'):
    distribute.ElasticAverageStrategy(devices=['/cpu:0'])


def test_devices_in_a_cluster_are_refused():
  resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
      tf.train.ClusterSpec({'worker': ['a:1'], 'ps': ['b:1']}),
      task_type='worker', task_id=0)
  with pytest.raises(ValueError, match='must be None in a cluster'):
    distribute.ElasticAverageStrategy(resolver, devices=['/cpu:0', '/cpu:1'])
