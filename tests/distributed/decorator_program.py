# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: one task of a cluster trains a decorated model_fn.

The gradient is the same in every step: what a worker's copy should do between
communications can be told from the values alone.

  python decorator_program.py <directory>
"""

import json
import os
import pathlib
import sys
import time

import tensorflow as tf

import tfplugin.estimator

tf1 = tf.compat.v1

MAX_STEPS = 40
LIMIT_SECONDS = 25
RATE = 0.5
TASKS = ('chief-0', 'worker-0', 'worker-1')


@tfplugin.estimator.elastic_average(communication_period=2, moving_rate=0.25)
def model_fn(features, labels, mode):
  """loss = sum of w, so that the gradient is 1."""
  del labels
  w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
  y = features * tf.reduce_sum(w)
  loss = tf.reduce_mean(y)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf1.estimator.EstimatorSpec(mode, {'y': y})
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf1.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
        'w': tf1.metrics.mean(w[0])})
  optimizer = tf1.train.MomentumOptimizer(RATE, 0.0)
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf1.data.Dataset.from_tensors(tf.ones([1])).repeat()


def serving_input_fn():
  x = tf1.placeholder(tf.float32, [None])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


class RecordHook(tf1.train.SessionRunHook):
  """Writes what this worker saw; the chief waits for the others' files."""

  def __init__(self, directory):
    self._directory = directory
    task = json.loads(os.environ['TF_CONFIG'])['task']
    self._name = f'{task["type"]}-{task["index"]}'
    self._copies = []
    self._first_step = None

  def begin(self):
    self._copy = tf1.trainable_variables()[0].read_value()
    centers = {v.op.name: v for v in tf1.global_variables()}
    center = centers['global_center_variable/w']
    self._center = center.read_value()
    self._step = tf1.train.get_global_step().read_value()
    self._devices = {'copy': tf1.trainable_variables()[0].device,
                     'center': center.device}

  def before_run(self, run_context):
    # Not when the session is made: the copy starts in a hook of the model_fn.
    if not self._copies:
      self._copies = [run_context.session.run(self._copy).tolist()]

  def after_run(self, run_context, run_values):
    self._first_step = self._first_step or time.time()
    self._copies.append(run_context.session.run(self._copy).tolist())

  def end(self, session):
    record = {'first_step': self._first_step, 'copies': self._copies,
              'devices': self._devices}
    if self._name == TASKS[0]:
      self._wait_for_the_others()
      record.update(center=session.run(self._center).tolist(),
                    global_step=int(session.run(self._step)))
    path = self._directory / f'{self._name}.json'
    path.with_suffix('.part').write_text(json.dumps(record))
    path.with_suffix('.part').rename(path)

  def _wait_for_the_others(self):
    deadline = time.time() + LIMIT_SECONDS
    while time.time() < deadline and not all(
        (self._directory / f'{task}.json').exists() for task in TASKS[1:]):
      time.sleep(0.1)


def main(directory):
  directory = pathlib.Path(directory)
  config = tf1.estimator.RunConfig(
      model_dir=str(directory / 'model'), save_checkpoints_secs=600,
      experimental_max_worker_delay_secs=0)
  estimator = tf1.estimator.Estimator(model_fn, config=config)
  tfplugin.estimator.train_and_evaluate(
      estimator,
      tf1.estimator.TrainSpec(
          input_fn, max_steps=MAX_STEPS, hooks=[RecordHook(directory)]),
      tf1.estimator.EvalSpec(
          input_fn, steps=1, start_delay_secs=0, throttle_secs=0,
          exporters=tf1.estimator.FinalExporter('last', serving_input_fn)))


if __name__ == '__main__':
  main(*sys.argv[1:])
