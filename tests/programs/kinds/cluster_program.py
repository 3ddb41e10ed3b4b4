# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: a task of a cluster trains a model_fn of a public kind.

A hook of each worker takes gradients in each step.

  python cluster_program.py <settings, as JSON>
"""

import json
import os
import pathlib
import sys
import time

import numpy as np
import tensorflow as tf

import tfplugin.estimator
from tests.programs.kinds import model_fns_of_gradients
from tests.programs.kinds import model_fns_of_steps
from tests.programs.kinds import serving

tf1 = tf.compat.v1
LIMIT_SECONDS = 60
WORKERS = ('chief-0', 'worker-0')

_MODEL_FNS = {**model_fns_of_gradients.ALL, **model_fns_of_steps.ALL}

DECORATORS = {
    'drop_stale': tfplugin.estimator.drop_stale_gradients(staleness=10**6),
    'clip': tfplugin.estimator.clip_variables(
        rules={'kernel$': 0}, max_norm=0.7),
    'elastic': tfplugin.estimator.elastic_average(
        communication_period=1, moving_rate=0.25),
}


class _Hook(tf1.train.SessionRunHook):
  """Counts the steps of a task, and sees a gradient for each variable."""

  def __init__(self, directory):
    task = json.loads(os.environ['TF_CONFIG'])['task']
    self._directory = directory
    self._name = f'{task["type"]}-{task["index"]}'
    self._made = 0

  def begin(self):
    loss = tf1.get_collection('loss_of_model')[0]
    variables = tf1.trainable_variables()
    gradients = tf.gradients(loss, variables)
    missing = [v.name for g, v in zip(gradients, variables) if g is None]
    assert not missing, missing
    self._norms = [tf.norm(tf.convert_to_tensor(g)) for g in gradients]

  def before_run(self, run_context):
    return tf1.train.SessionRunArgs(self._norms)

  def after_run(self, run_context, run_values):
    norms = run_values.results
    assert np.all(np.isfinite(norms)) and max(norms) > 0, norms
    self._made += 1
    if self._made == 3:
      self._wait_for_others()

  def _wait_for_others(self):
    """So that no task ends before another one has begun."""
    (self._directory / f'{self._name}.began').touch()
    deadline = time.time() + LIMIT_SECONDS
    while time.time() < deadline and not all(
        (self._directory / f'{name}.began').exists() for name in WORKERS):
      time.sleep(0.01)

  def end(self, session):
    (self._directory / f'{self._name}.made').write_text(str(self._made))


def model_fn_of(name):
  """Returns a model_fn that keeps its loss, and a batch for it."""
  model_fn, = (each for each in _MODEL_FNS if each.__name__ == name)

  def noting(features, labels, mode):
    spec = model_fn(features, labels, mode)
    if spec.loss is not None:
      tf1.add_to_collection('loss_of_model', spec.loss)
    return spec

  return noting, _MODEL_FNS[model_fn]


def main(settings):
  """Runs this process's part."""
  if settings['behavior'] == 'v1':
    tf1.disable_v2_behavior()
  directory = pathlib.Path(settings['directory'])
  model_fn, batch = model_fn_of(settings['kind'])
  estimator = tf1.estimator.Estimator(
      DECORATORS[settings['form']](model_fn), config=tf1.estimator.RunConfig(
          str(directory / 'model'), save_checkpoints_steps=10**6,
          experimental_max_worker_delay_secs=0))
  tfplugin.estimator.train_and_evaluate(
      estimator,
      tf1.estimator.TrainSpec(
          lambda: tf1.data.Dataset.from_tensors(batch).repeat(
              settings['batches']), hooks=[_Hook(directory)]),
      tf1.estimator.EvalSpec(
          lambda: tf1.data.Dataset.from_tensors(batch), steps=1,
          start_delay_secs=0, throttle_secs=0,
          exporters=tf1.estimator.FinalExporter(
              'last', serving.receiver_of(batch[0]))))


if __name__ == '__main__':
  main(json.loads(sys.argv[1]))
