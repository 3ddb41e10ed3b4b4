# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: one task of a cluster trains with a strategy.

The model's gradient is the same in every step, so that values alone tell how a
worker's copy moved between exchanges, and how often an optimizer was applied.

  python strategy_program.py <strategy> <directory>
"""

import json
import os
import pathlib
import sys
import time

import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

MAX_STEPS = 40
FREE_STEPS = 4
WORKERS = ('chief-0', 'worker-0', 'worker-1')
LIMIT_SECONDS = 60
RATE = 0.5

STRATEGIES = {
    'elastic': lambda: distribute.ElasticAverageStrategy(
        communication_period=2, moving_rate=0.25),
    'drop_stale_and_clip': lambda: distribute.VariableClippingStrategy(
        distribute.DropStaleGradientStrategy(staleness=0), {'clip': 0}, 3.0),
}


def model_fn(features, labels, mode):
  """loss = sum of all elements, so that the gradient is 1."""
  del labels
  w = tf1.get_variable('w', [2], initializer=tf1.ones_initializer())
  clipped = tf1.get_variable('clipped', initializer=[1.0, 1.0])
  loss = tf.reduce_sum((w + clipped) * features)
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf1.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
        'w': tf1.metrics.mean(w[0])})
  train_op = tf1.train.GradientDescentOptimizer(RATE).minimize(
      loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf1.data.Dataset.from_tensors(tf.ones([])).repeat()


class RecordHook(tf1.train.SessionRunHook):
  """Writes what this worker saw.

  After a few steps each waits for the first step of the others, so that all of
  them train, and no checkpoint but the last one is of MAX_STEPS: the evaluator
  is done with the first that is. The chief waits for the others' files, too.
  """

  def __init__(self, directory):
    self._directory = directory
    task = json.loads(os.environ['TF_CONFIG'])['task']
    self._name = f'{task["type"]}-{task["index"]}'
    self._values = []
    self._first_step = None

  def begin(self):
    # The graph's own counters, by the names in the strategies' documentation.
    local = {v.op.name: v for v in tf1.local_variables()}
    applied = local.get('stale_gradients/num_applied')
    self._fetches = {
        'w': tf1.trainable_variables()[0].value(),
        'applied': tf.constant(-1) if applied is None else applied.value()}

  def before_run(self, run_context):
    if len(self._values) > FREE_STEPS:
      self._wait_for_all('started')

  def after_create_session(self, session, coord):
    self._values = [self._look(session)]

  def after_run(self, run_context, run_values):
    if self._first_step is None:
      self._first_step = time.time()
      (self._directory / f'{self._name}.started').touch()
    self._values.append(self._look(run_context.session))

  def _look(self, session):
    seen = session.run(self._fetches)
    return seen['w'].tolist(), int(seen['applied'])

  def end(self, session):
    record = {'first_step': self._first_step, 'values': self._values}
    path = self._directory / f'{self._name}.json'
    path.with_suffix('.part').write_text(json.dumps(record))
    path.with_suffix('.part').rename(path)
    if self._name == 'chief-0':
      self._wait_for_all('json')

  def _wait_for_all(self, suffix):
    deadline = time.time() + LIMIT_SECONDS
    while time.time() < deadline and not all(
        (self._directory / f'{name}.{suffix}').exists() for name in WORKERS):
      time.sleep(0.01)


def main(strategy, directory):
  directory = pathlib.Path(directory)
  config = tf1.estimator.RunConfig(
      model_dir=str(directory / 'model'), save_checkpoints_secs=600,
      train_distribute=STRATEGIES[strategy](),
      experimental_max_worker_delay_secs=0)
  estimator = tf1.estimator.Estimator(model_fn, config=config)
  hook = RecordHook(directory)
  tf1.estimator.train_and_evaluate(
      estimator,
      tf1.estimator.TrainSpec(input_fn, max_steps=MAX_STEPS, hooks=[hook]),
      tf1.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                             throttle_secs=0))


if __name__ == '__main__':
  main(*sys.argv[1:])
