# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the settings that reach the server of each task."""

import json
import sys

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.bin.processes import ports
from tfplugin.distribute.sessions import server_options
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1


def _session_config():
  config = tf1.ConfigProto(
      inter_op_parallelism_threads=3, intra_op_parallelism_threads=2,
      device_filters=['/job:ps'], allow_soft_placement=True)
  config.rpc_options.compression_algorithm = 'gzip'
  return config


def test_filters_and_placement_are_left_out():
  options = server_options.of_session(_session_config())
  assert options.inter_op_parallelism_threads == 3
  assert options.rpc_options.compression_algorithm == 'gzip'
  assert not options.device_filters and not options.allow_soft_placement
  assert server_options.of_session(None) == tf1.ConfigProto()


STRATEGIES = {
    # A decorator's model_fn, too, which is not called before the server starts.
    'none': lambda: None,
    'elastic': distribute.ElasticAverageStrategy,
    'drop stale': lambda: distribute.DropStaleGradientStrategy(staleness=3),
    'packed': distribute.PackedParameterServerStrategy,
    'clip': lambda: distribute.VariableClippingStrategy(
        distribute.DropStaleGradientStrategy(staleness=3), {'w': []}, 1.0),
}


@pytest.mark.parametrize('job', ['ps', 'chief', 'worker'])
@pytest.mark.parametrize('form', STRATEGIES)
def test_threads_and_rpc_options_reach_every_server(
    form, job, monkeypatch, tmp_path):
  class StartedError(Exception):
    """In the place of a server."""

  def start(*args, config=None, **kwargs):
    del args, kwargs
    raise StartedError(config)

  # TensorFlow's own coordinator and executor call it by its module.
  monkeypatch.setattr(sys.modules[tf.distribute.Server.__module__], 'Server',
                      start)
  monkeypatch.setattr(tf.distribute, 'Server', start)
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': ports.make_cluster(1, 1), 'task': {'type': job, 'index': 0}}))
  estimator = tf.estimator.Estimator(
      lambda features, labels, mode: None, str(tmp_path),
      tf.estimator.RunConfig(session_config=_session_config(),
                             train_distribute=STRATEGIES[form](),
                             experimental_max_worker_delay_secs=0))
  with pytest.raises(StartedError) as started:
    cluster_training.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(lambda: None, max_steps=1),
        tf.estimator.EvalSpec(lambda: None))
  config, = started.value.args
  assert config.inter_op_parallelism_threads == 3
  assert config.intra_op_parallelism_threads == 2
  assert config.rpc_options.compression_algorithm == 'gzip'


@pytest.mark.parametrize('set_threads, is_warned', [(None, True), (3, False)])
def test_settings_that_come_too_late_are_named(
    set_threads, is_warned, monkeypatch, caplog):
  """A strategy of several processes starts the server when it is made."""
  strategy = distribute.CrossShardStrategy(['/cpu:0'])
  strategy.extended._std_server_started = True
  if set_threads:
    monkeypatch.setitem(server_options._THREADS, 'inter_op_parallelism_threads',
                        lambda: set_threads)
  server_options.of_run(tf.estimator.RunConfig(
      session_config=tf1.ConfigProto(
          inter_op_parallelism_threads=3, device_count={'CPU': 2}),
      train_distribute=strategy))
  assert ('Received: inter_op_parallelism_threads=3. Call' in
          caplog.text) == is_warned
  assert 'device_count' not in caplog.text
