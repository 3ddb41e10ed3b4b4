# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: one task of a cluster trains a decorated model_fn.

The gradient is the same in every step, so that values alone tell a worker's
part in them. No step ends before all workers have begun one. The first worker's
first step takes long: the others make AHEAD more meanwhile.

  python decorator_program.py <decorators> <directory>
"""

import json
import os
import pathlib
import sys
import time

import numpy as np
import tensorflow as tf

import tfplugin.estimator

tf1 = tf.compat.v1

MAX_STEPS = 40
LIMIT_SECONDS = 60
RATE = 0.5
STALENESS = 4
AHEAD = 6
WORKERS = ('chief-0', 'worker-0', 'worker-1')

DECORATORS = {
    'elastic': tfplugin.estimator.elastic_average(
        communication_period=2, moving_rate=0.25),
    'drop_stale_and_clip': lambda model_fn: (
        tfplugin.estimator.drop_stale_gradients(
            tfplugin.estimator.clip_variables(
                model_fn, rules={'clip': 0}, max_norm=3.0),
            staleness=STALENESS, use_locking=True)),
}


def model_fn(features, labels, mode):
  """loss = sum of all elements, so that the gradient is 1."""
  del labels
  w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
  clipped = tf1.get_variable('clipped', initializer=[1.0, 1.0])
  y = features * tf.reduce_sum(w + clipped)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf1.estimator.EstimatorSpec(mode, {'y': y})
  loss = tf.reduce_mean(y)
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf1.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
        'w': tf1.metrics.mean(w[0])})
  loss *= tf.reshape(tf1.py_func(hold, [w], tf.float32), [])
  optimizer = tf1.train.MomentumOptimizer(RATE, 0.0)
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf1.data.Dataset.from_tensors(tf.ones([1])).repeat()


def serving_input_fn():
  x = tf1.placeholder(tf.float32, [None])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


def task_name():
  task = json.loads(os.environ['TF_CONFIG'])['task']
  return f'{task["type"]}-{task["index"]}'


class Meeting:
  """Files by which the workers see how far the others are."""

  def __init__(self, directory):
    self._is_first_worker = task_name() == 'worker-0'
    self._begun = [directory / f'{name}.begun' for name in WORKERS]
    self._own_begun = directory / f'{task_name()}.begun'
    self._go = directory / 'go'
    self._step_when_begun = None

  def in_forward_pass(self):
    """The first worker waits for `go`, the others for all to have begun."""
    self._own_begun.touch()
    deadline = time.time() + LIMIT_SECONDS
    while time.time() < deadline and not all(
        path.exists() for path in
        ([self._go] if self._is_first_worker else self._begun)):
      time.sleep(0.01)

  def after_step(self, global_step):
    """Lets the first worker go on when the others are ahead."""
    if self._step_when_begun is None:
      self._step_when_begun = global_step
    if global_step >= self._step_when_begun + AHEAD:
      self._go.touch()


def hold(value):
  """In the forward pass, which waits for the weight: takes its time."""
  MEETING.in_forward_pass()
  return np.ones_like(value[0])


class RecordHook(tf1.train.SessionRunHook):
  """Writes what this worker saw."""

  def __init__(self, directory):
    self._directory = directory
    self._values = []
    self._begun = None

  def begin(self):
    w = tf1.trainable_variables()[0]
    counters = {v.op.name.split('/')[-1]: v for v in tf1.local_variables()}
    self._fetches = {'w': w.read_value()}
    for name in ('num_applied', 'num_dropped'):
      if name in counters:
        self._fetches[name] = counters[name].read_value()
    self._step = tf1.train.get_global_step().read_value()
    self._devices = {v.op.name: v.device for v in
                     [*tf1.global_variables(), *tf1.local_variables()]}
    self._devices.update({
        f'centre of {v.op.name}': v.center.device
        for v in tf1.local_variables() if hasattr(v, 'center')})

  def before_run(self, run_context):
    # Not when the session is made: the copy starts in a hook of the model_fn.
    if not self._values:
      self._begun = time.time()
      self._values = [self._look(run_context.session)]

  def after_run(self, run_context, run_values):
    self._values.append(self._look(run_context.session))
    MEETING.after_step(int(run_context.session.run(self._step)))

  def _look(self, session):
    return {name: value.tolist()
            for name, value in session.run(self._fetches).items()}

  def end(self, session):
    record = {'begun': self._begun, 'values': self._values,
              'devices': self._devices}
    path = self._directory / f'{task_name()}.json'
    path.with_suffix('.part').write_text(json.dumps(record))
    path.with_suffix('.part').rename(path)


def main(decorators, directory):
  config = tf1.estimator.RunConfig(
      model_dir=str(directory / 'model'), save_checkpoints_secs=600,
      experimental_max_worker_delay_secs=0)
  estimator = tf1.estimator.Estimator(
      DECORATORS[decorators](model_fn), config=config)
  tfplugin.estimator.train_and_evaluate(
      estimator,
      tf1.estimator.TrainSpec(
          input_fn, max_steps=MAX_STEPS, hooks=[RecordHook(directory)]),
      tf1.estimator.EvalSpec(
          input_fn, steps=1, start_delay_secs=0, throttle_secs=0,
          exporters=tf1.estimator.FinalExporter('last', serving_input_fn)))


if __name__ == '__main__':
  DIRECTORY = pathlib.Path(sys.argv[2])
  MEETING = Meeting(DIRECTORY)
  main(sys.argv[1], DIRECTORY)
