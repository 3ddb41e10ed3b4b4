# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program that reads the task's part of the data, as the docs say.

Each task writes the elements that it trains on, and its `config`.

  python data_program.py <settings, as JSON>
"""

import json
import os
import pathlib
import sys

import tensorflow as tf

import tfplugin.estimator
from tests.distributed import ends_program

tf1 = tf.compat.v1
_OF_CONFIG = ('task_type', 'task_id', 'is_chief', 'num_worker_replicas',
              'num_ps_replicas')


def _input_fn(settings, task_name):
  """Returns the page's input_fn, which notes what it is given and yields."""
  directory = pathlib.Path(settings['directory'])
  page = {'tf': tf}
  exec(settings['code'], page)  # Defines `input_fn`.

  def note(element):
    with open(directory / f'{task_name}.read', 'a') as file:
      file.write(f'{element}\n')
    return element

  def input_fn(config):
    (directory / f'{task_name}.config').write_text(json.dumps(
        {name: getattr(config, name) for name in _OF_CONFIG}))
    return page['input_fn'](config).map(lambda element: tf.ensure_shape(
        tf.numpy_function(note, [element], tf.int64), [])).batch(1)

  return input_fn


def _model_fn(features, mode):
  w = tf1.get_variable('w', [], initializer=tf1.zeros_initializer())
  loss = w * tf.reduce_mean(tf.cast(features, tf.float32))
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss,
      train_op=tf1.train.GradientDescentOptimizer(0.01).minimize(
          loss, tf1.train.get_global_step()))


def main(settings):
  """Runs this process's part."""
  task = json.loads(os.environ['TF_CONFIG']).get('task', {})
  name = f'{task.get("type", "worker")}-{task.get("index", 0)}'
  form = settings['form']
  strategy = ends_program.STRATEGIES.get(form, lambda: None)()
  estimator = tf1.estimator.Estimator(
      ends_program.DECORATORS.get(form, lambda model_fn: model_fn)(_model_fn),
      config=tf1.estimator.RunConfig(
          f'{settings["directory"]}/model', train_distribute=strategy,
          experimental_max_worker_delay_secs=0))
  tfplugin.estimator.train_and_evaluate(
      estimator, tf1.estimator.TrainSpec(_input_fn(settings, name)),
      tf1.estimator.EvalSpec(
          lambda: tf.data.Dataset.from_tensors([1]), steps=1,
          start_delay_secs=0, throttle_secs=0))


if __name__ == '__main__':
  main(json.loads(sys.argv[1]))
