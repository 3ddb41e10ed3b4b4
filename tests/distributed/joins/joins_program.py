# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: one task of a run that workers join and leave.

Each step adds 1 to the variable, so that the variable counts the steps of all
workers; under elastic averaging a step adds 1 to the worker's copy. All of them
end when the file `end` is in the directory.

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

PERIOD = 2
DECORATORS = {
    'plain': lambda model_fn: model_fn,
    'drop': lambda model_fn: tfplugin.estimator.drop_stale_gradients(
        model_fn, staleness=1000),
    'clip': lambda model_fn: tfplugin.estimator.clip_variables(
        model_fn, rules={'w': 0}, max_norm=1e9),
    # Without a penalty, whose gradient would not be 1.
    'elastic': lambda model_fn: tfplugin.estimator.elastic_average(
        model_fn, communication_period=PERIOD, rho=0.0),
}
STRATEGIES = {
    'drop_strategy': lambda: distribute.DropStaleGradientStrategy(
        staleness=1000),
    'clip_strategy': lambda: distribute.VariableClippingStrategy(
        distribute.PackedParameterServerStrategy(), {'w': 0}, 1e9),
    'elastic_strategy': lambda: distribute.ElasticAverageStrategy(
        communication_period=PERIOD),
}


def model_fn(features, labels, mode):
  """The loss is -w, so that a step of SGD with rate 1 adds 1."""
  del labels
  w = tf1.get_variable('w', [2], tf.float64, tf1.zeros_initializer())
  loss = -tf.reduce_sum(w * tf.reduce_mean(features))
  train_op = None
  if mode == tf.estimator.ModeKeys.TRAIN:
    train_op = tf1.train.GradientDescentOptimizer(1.0).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf1.data.Dataset.from_tensors(tf.ones([1], tf.float64)).repeat()


class RecordHook(tf1.train.SessionRunHook):
  """Writes, of each step of this process, its times and the value after it.

  The value is of the worker's own variable: under elastic averaging its copy.
  Without it a step sends no message more than the program's.
  """

  def __init__(self, directory, step_secs, has_values):
    task = json.loads(os.environ['TF_CONFIG'])['task']
    name = f'{task["type"]}-{task["index"]}'
    self._file = open(
        directory / f'{name}.{os.getpid()}.steps', 'w', encoding='utf-8')
    self._end = directory / 'end'
    self._step_secs = step_secs
    self._has_values = has_values
    self._value = None
    self._write(_CREATED)

  def begin(self):
    if self._has_values:
      w, = tf1.trainable_variables()
      self._value = w.read_value()[0]

  def before_run(self, run_context):
    del run_context
    self._begun = time.time()

  def after_run(self, run_context, run_values):
    del run_values
    ended, value = time.time(), 0.0
    if self._has_values:
      value = run_context.session.run(self._value)
    self._write(self._begun, ended, float(value))
    if self._end.exists():
      run_context.request_stop()
    time.sleep(self._step_secs)

  def _write(self, *numbers):
    self._file.write(' '.join(map(repr, numbers)) + '\n')
    self._file.flush()


def read_records(directory):
  """Returns what each process has written, as a list of dicts.

  `steps` has the begin, the end and the value of each step.
  """
  found = []
  for path in sorted(directory.glob('*.steps')):
    # A killed process may have written a part of its last line.
    lines = path.read_text().rpartition('\n')[0].split('\n')
    created, *steps = ([float(word) for word in line.split()] for line in lines)
    if steps:
      task, pid, _ = path.name.split('.')
      found.append({'task': task, 'pid': int(pid), 'created': created[0],
                    'steps': [tuple(step) for step in steps]})
  return found


def main(form, directory, step_secs):
  config = tf1.estimator.RunConfig(
      model_dir=str(directory / 'model'), save_checkpoints_secs=600,
      train_distribute=STRATEGIES[form]() if form in STRATEGIES else None,
      experimental_max_worker_delay_secs=0)
  decorate = DECORATORS.get(form, lambda model_fn: model_fn)
  tfplugin.estimator.train_and_evaluate(
      tf1.estimator.Estimator(decorate(model_fn), config=config),
      tf1.estimator.TrainSpec(
          input_fn, hooks=[RecordHook(directory, step_secs,
                                      form == 'elastic')]),
      tf1.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                             throttle_secs=5), finish_limit_secs=50)


if __name__ == '__main__':
  main(sys.argv[1], pathlib.Path(sys.argv[2]), float(sys.argv[3]))
