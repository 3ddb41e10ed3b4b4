# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: one task of a run that workers join and leave.

Each step adds 1 to the variable, so that the variable counts the steps of all
workers. All of them end when the file `end` is in the directory.

  python joins_program.py <form> <directory> <seconds of a step>
"""

import json
import os
import pathlib
import sys
import time

# Before TensorFlow is loaded.
_CREATED = time.time()

import tensorflow as tf  # noqa: E402

import tfplugin.estimator  # noqa: E402
from tfplugin import distribute  # noqa: E402

tf1 = tf.compat.v1

DECORATORS = {
    'plain': lambda model_fn: model_fn,
    'drop': lambda model_fn: tfplugin.estimator.drop_stale_gradients(
        model_fn, staleness=1000),
    'clip': lambda model_fn: tfplugin.estimator.clip_variables(
        model_fn, rules={'w': 0}, max_norm=1e9),
    'elastic': lambda model_fn: tfplugin.estimator.elastic_average(
        model_fn, communication_period=2),
}
STRATEGIES = {
    'drop_strategy': lambda: distribute.DropStaleGradientStrategy(
        staleness=1000),
    'clip_strategy': lambda: distribute.VariableClippingStrategy(
        distribute.PackedParameterServerStrategy(), {'w': 0}, 1e9),
    'elastic_strategy': lambda: distribute.ElasticAverageStrategy(
        communication_period=2),
}


def model_fn(features, labels, mode):
  """The loss is -w, so that a step of SGD with rate 1 adds 1."""
  del labels
  w = tf1.get_variable('w', [2], initializer=tf1.zeros_initializer())
  loss = -tf.reduce_sum(w * tf.reduce_mean(features))
  train_op = None
  if mode == tf.estimator.ModeKeys.TRAIN:
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf1.data.Dataset.from_tensors(tf.ones([1])).repeat()


class RecordHook(tf1.train.SessionRunHook):
  """Writes the times of this process's steps, and counts them."""

  def __init__(self, directory, step_secs):
    task = json.loads(os.environ['TF_CONFIG'])['task']
    name = f'{task["type"]}-{task["index"]}'
    self._path = directory / f'{name}.{os.getpid()}.json'
    self._step_secs = step_secs
    self._record = {'task': name, 'created': _CREATED, 'steps': 0,
                    'first_step': None, 'times': []}

  def after_run(self, run_context, run_values):
    del run_values
    self._record['steps'] += 1
    self._record['times'].append(time.time())
    self._record['first_step'] = self._record['times'][0]
    part = self._path.with_suffix('.part')
    part.write_text(json.dumps(self._record))
    part.rename(self._path)
    if (self._path.parent / 'end').exists():
      run_context.request_stop()
    time.sleep(self._step_secs)


def main(form, directory, step_secs):
  config = tf1.estimator.RunConfig(
      model_dir=str(directory / 'model'), save_checkpoints_secs=600,
      train_distribute=STRATEGIES[form]() if form in STRATEGIES else None,
      experimental_max_worker_delay_secs=0)
  decorate = DECORATORS.get(form, lambda model_fn: model_fn)
  tfplugin.estimator.train_and_evaluate(
      tf1.estimator.Estimator(decorate(model_fn), config=config),
      tf1.estimator.TrainSpec(
          input_fn, hooks=[RecordHook(directory, step_secs)]),
      tf1.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                             throttle_secs=5), finish_limit_secs=50)


if __name__ == '__main__':
  main(sys.argv[1], pathlib.Path(sys.argv[2]), float(sys.argv[3]))
