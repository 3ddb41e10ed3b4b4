# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: one of two workers that train in step, without end.

  python lost_peer_program.py <directory> <engine>
"""

import pathlib
import sys

import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator as estimator_lib

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
  del labels
  w = tf1.get_variable('w', initializer=1.0)
  loss = w * tf.reduce_mean(features)
  train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
      loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
  return tf.data.Dataset.from_tensors([1.0]).repeat()


class TouchHook(tf1.train.SessionRunHook):
  """Shows that a step has been made."""

  def __init__(self, path):
    self._path = path

  def after_run(self, run_context, run_values):
    self._path.touch()


def main(directory, engine):
  strategy = distribute.CrossShardStrategy(engine=engine)
  config = tf.estimator.RunConfig(
      f'{directory}/model', train_distribute=strategy)
  hook = TouchHook(pathlib.Path(directory) / 'stepped')
  estimator_lib.train_and_evaluate(
      tf.estimator.Estimator(model_fn, config=config),
      tf.estimator.TrainSpec(input_fn, max_steps=10**9, hooks=[hook]),
      tf.estimator.EvalSpec(input_fn, steps=1), contact_limit_secs=30.0)


if __name__ == '__main__':
  main(*sys.argv[1:])
