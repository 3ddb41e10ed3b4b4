# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the parameter server that ends by itself."""

import json
import threading

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import waits


def _config(monkeypatch, cluster, task_type):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': task_type, 'index': 0}}))
  return tf.estimator.RunConfig()


def test_it_ends_when_the_chief_and_every_worker_have_reported(monkeypatch):
  cluster = ports.make_cluster(1, 1)
  spec = tf.train.ClusterSpec(cluster)
  config = _config(monkeypatch, cluster, 'ps')
  server = threading.Thread(
      target=waits.run_parameter_server, args=[config, 60.0], daemon=True)
  server.start()
  task_records.report_finished(spec, 'worker:0')
  server.join(1.0)
  assert server.is_alive()
  task_records.report_finished(spec, 'chief:0')
  server.join(20.0)
  assert not server.is_alive()


def test_its_limit_names_who_has_not_reported(monkeypatch):
  config = _config(monkeypatch, ports.make_cluster(1, 1), 'ps')
  with pytest.raises(TimeoutError, match=(
      'ps:0 waited 0.2 s for the last step of chief:0, worker:0')):
    waits.run_parameter_server(config, 0.2)


def test_it_ends_when_the_chief_has_gone(monkeypatch):
  config = _config(monkeypatch, ports.make_cluster(1, 1), 'ps')
  with pytest.raises(TimeoutError, match=(
      'ps:0 waited 0.2 s for a sign of chief:0 at .*counts as lost')):
    waits.run_parameter_server(config, contact_limit_secs=0.2)


def test_another_task_is_refused(monkeypatch):
  config = _config(monkeypatch, ports.make_cluster(0, 1), 'chief')
  with pytest.raises(ValueError, match="of type `ps`. Received: 'chief'"):
    waits.run_parameter_server(config)
