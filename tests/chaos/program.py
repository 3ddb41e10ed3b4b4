# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program for the matrix of faults: weights that go to 3.

A step sleeps, as one that computes would keep an accelerator busy: runs beside
each other do not disturb each other. Each step is told of in a file.

  python program.py FORM DIRECTORY STEPS NUM_WORKERS \
      [SAVE_STEPS [STEP_SECS [early]]]

With `early` each task has TensorFlow's hook for early stopping, which makes a
variable when it begins, and never stops.
"""

import contextlib
import json
import os
import pathlib
import sys
import time

import tensorflow as tf

import tfplugin
from tests.chaos import accounting
from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin.events import clock

tf1 = tf.compat.v1

STEP_SECS = 0.02
SAVE_STEPS = 20
TARGET = 3.0
RATE = 0.05
MAX_NORM = 4.0
_ELASTIC = dict(communication_period=2, moving_rate=0.25, count_steps='local',
                on_nonfinite='drop')
_CLIP = dict(rules={'weight_0': 0, 'weight_1': 0}, max_norm=MAX_NORM)


def decorators(num_workers):
  elastic = dict(_ELASTIC, num_worker=num_workers)
  return {
      'elastic_average': estimator_lib.elastic_average(**elastic),
      'elastic_average, synchronous': estimator_lib.elastic_average(
          **elastic, synchronous=True),
      'drop_stale_gradients': estimator_lib.drop_stale_gradients(staleness=5),
      'clip_variables': estimator_lib.clip_variables(**_CLIP),
  }


def strategy(form, num_workers):
  if form == 'ElasticAverageStrategy':
    return distribute.ElasticAverageStrategy(**_ELASTIC, num_worker=num_workers)
  if form == 'DropStaleGradientStrategy':
    return distribute.DropStaleGradientStrategy(staleness=5)
  if form == 'VariableClippingStrategy':
    return distribute.VariableClippingStrategy(
        tf1.distribute.experimental.ParameterServerStrategy(), **_CLIP)
  if form == 'CrossShardStrategy':
    return distribute.CrossShardStrategy()
  return None


def model_fn(features, labels, mode):
  """loss = sum of (w - 3) ** 2 / 2, so that each step goes on by RATE."""
  del labels
  weights = [tf1.get_variable(f'weight_{i}', [4],
                              initializer=tf1.zeros_initializer())
             for i in range(2)]
  loss = tf.reduce_mean(features) * tf.add_n(
      [tf.reduce_sum((w - TARGET) ** 2) / 2 for w in weights])
  train_op = None
  if mode == tf.estimator.ModeKeys.TRAIN:
    train_op = tf1.train.GradientDescentOptimizer(RATE).minimize(
        loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf.data.Dataset.from_tensors([1.0]).repeat()


class StepsHook(tf1.train.SessionRunHook):
  """Makes steps as long as those of a model, and notes each for `accounting`.
  """

  def __init__(self, path, step_secs):
    self._step_secs = step_secs
    self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    self._waiting = b''

  def begin(self):
    self._counts = [tf1.train.get_global_step(), *(
        v for v in tf1.global_variables() if 'stale_counter' in v.op.name)]
    # The strategy of drop stale has no count of all workers' drops, and what a
    # copy with a NaN drops is in no count.
    self._own_drops = [
        v for v in tf1.local_variables()
        if 'elastic_average/num_nonfinite' in v.op.name
        or 'num_dropped' in v.op.name and not self._counts[1:]]

  def after_create_session(self, session, coord):
    self._num_dropped = session.run(self._own_drops)
    self._note(accounting.SESSION, session.run(self._counts))

  def before_run(self, run_context):
    self._note(accounting.BEGUN)
    return tf1.train.SessionRunArgs(self._counts)

  def after_run(self, run_context, run_values):
    before, self._num_dropped = (
        self._num_dropped, run_context.session.run(self._own_drops))
    self._note(accounting.ENDED if self._num_dropped == before else
               accounting.DROPPED, run_values.results)
    time.sleep(self._step_secs)

  def end(self, session):
    while self._waiting:  # The disk is full still.
      time.sleep(self._step_secs)
      self._write()

  def _note(self, kind, counts=()):
    counts = [int(count) for count in counts]
    self._waiting += json.dumps(accounting.Note(
        clock.now(), os.getpid(), *counts[:1] or [None], kind, sum(counts)
    )).encode() + b'\n'
    self._write()

  def _write(self):
    with contextlib.suppress(OSError):  # A full disk: with the next one.
      os.write(self._file, self._waiting)
      self._waiting = b''


def main(form, directory, steps, num_workers, save_steps=SAVE_STEPS,
         step_secs=STEP_SECS, stopping=''):
  root = pathlib.Path(directory)
  task = json.loads(os.environ['TF_CONFIG'])['task']
  config = tf.estimator.RunConfig(
      str(root / 'model'), save_checkpoints_steps=int(save_steps),
      train_distribute=strategy(form, int(num_workers)),
      experimental_max_worker_delay_secs=0)
  decorated = decorators(int(num_workers)).get(form, lambda fn: fn)(model_fn)
  hook = StepsHook(root / f'{task["type"]}-{task["index"]}.steps',
                   float(step_secs))
  # The chief waits half of the limit for a worker's last step: longer than the
  # 30 s in which a worker may not see a server's new address.
  estimator = tf.estimator.Estimator(decorated, config=config)
  early = [tf.estimator.experimental.make_early_stopping_hook(
      estimator, lambda: False)] if stopping else []
  estimator_lib.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(
          input_fn, max_steps=int(steps), hooks=[hook, *early]),
      tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                            throttle_secs=1),
      start_limit_secs=60.0, finish_limit_secs=120.0, contact_limit_secs=60.0)


if __name__ == '__main__':
  assert tfplugin
  main(*sys.argv[1:])
