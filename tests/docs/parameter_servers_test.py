# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the page on parameter servers and Keras 3 says of `Model.fit`."""
# BUILD data: //:sources

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import tensorflow as tf

from tests.docs import pages
from tfplugin.bin.processes import ports

_PROGRAM = '''
import os, sys
import tensorflow as tf

cluster = tf.train.ClusterSpec(
    {'worker': ['localhost:WORKER'], 'ps': ['localhost:PS']})
config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)
servers = [tf.distribute.Server(cluster, job, 0, 'grpc', config=config)
           for job in ('worker', 'ps')]
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, rpc_layer='grpc'))
with strategy.scope():
  model = tf.keras.Sequential(
      [tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1)])
  model.compile(tf.keras.optimizers.SGD(0.1), 'mse')
dataset = tf.data.Dataset.from_tensors(
    ([[1.0], [2.0]], [[3.0], [6.0]])).repeat()
try:
  loss = model.fit(dataset, epochs=2, steps_per_epoch=40, verbose=0).history[
      'loss']
  print('trains', loss[1] < loss[0])
except ValueError as error:
  print('ValueError:', str(error).splitlines()[0])
sys.stdout.flush()
os._exit(0)  # The servers have no end.
'''
_PAGE = 'start/parameter_servers.md'


@pytest.mark.skipif(tf.__version__.startswith('2.15.'),
                    reason='tf.keras is Keras 2 there')
@pytest.mark.parametrize('legacy, printed', [
    ('0', 'ValueError: To use this dataset, you need to pass this dataset to '
          'ClusterCoordinator.create_per_worker_dataset.'),
    ('1', 'trains True'),
])
def test_fit_on_parameter_servers(legacy, printed, tmp_path):
  worker, ps = ports.pick_free(2)
  program = tmp_path / 'program.py'
  program.write_text(_PROGRAM.replace('WORKER', str(worker)).replace(
      'PS', str(ps)))
  done = subprocess.run(
      [sys.executable, str(program)], capture_output=True, text=True,
      timeout=200, cwd=tmp_path, check=False,
      env={**os.environ, 'TF_USE_LEGACY_KERAS': legacy})
  assert done.stdout.strip().splitlines()[-1:] == [printed], done.stderr


def test_the_page_has_the_message():
  assert ('ValueError: To use this dataset, you need to pass this dataset to '
          'ClusterCoordinator.create_per_worker_dataset.'
          ) in pages.text_of(_PAGE)
