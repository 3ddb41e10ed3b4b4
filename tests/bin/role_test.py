# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of roles that cannot begin; tests/distributed has them train."""

import socket

import pytest
import tensorflow as tf

from tfplugin.bin import options as options_lib
from tfplugin.bin import role
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task


@pytest.fixture
def arguments(tmp_path):
  """A command line with a valid settings file."""
  return ['role', str(options_lib.TrainOptions(model_dir=str(tmp_path)).save())]


def test_the_settings_are_needed():
  with pytest.raises(SystemExit, match='Usage: python -m tfplugin.bin.role'):
    role.main(['role'])


@pytest.mark.parametrize('value', ['{no JSON', '{"cluster": {"ps": ["a:1"]}}'])
def test_a_bad_tf_config_is_refused(monkeypatch, arguments, value):
  monkeypatch.setenv('TF_CONFIG', value)
  with pytest.raises(ValueError, match='`TF_CONFIG` must'):
    role.main(arguments)


def test_an_occupied_port_is_refused(monkeypatch, arguments):
  with socket.create_server(('127.0.0.1', 0)) as server:
    cluster = {'chief': [f'127.0.0.1:{server.getsockname()[1]}'],
               'ps': ['127.0.0.1:1']}
    monkeypatch.setenv('TF_CONFIG', cluster_config.encode(
        cluster, cluster_config.Task('chief', 0)))
    with pytest.raises(RuntimeError, match='another process listens'):
      role.main(arguments)


@pytest.mark.parametrize('listener', ['127.0.0.1', '127.0.0.2', ''])
def test_an_occupied_port_is_refused_and_its_task_named(listener):
  # A server of TensorFlow listens on every address of its machine.
  with socket.create_server((listener, 0)) as server:
    address = f'127.0.0.1:{server.getsockname()[1]}'
    cluster = tf.train.ClusterSpec({'chief': [address], 'ps': ['a:1']})
    chief = cluster_task.ClusterTask(cluster, 'chief')
    with pytest.raises(RuntimeError, match=f'port of chief:0.*{address}'):
      role.check_port(chief)
    # The evaluator has no server.
    role.check_port(cluster_task.ClusterTask(cluster, 'evaluator'))
  role.check_port(chief)


def test_a_task_without_others_starts_no_server_and_needs_no_port():
  with socket.create_server(('127.0.0.1', 0)) as server:
    address = f'127.0.0.1:{server.getsockname()[1]}'
    role.check_port(cluster_task.ClusterTask(
        tf.train.ClusterSpec({'chief': [address]}), 'chief'))
