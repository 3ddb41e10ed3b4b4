# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a digit classifier with TPUEstimator, on a TPU or without one."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfplugin.bin import command_line
from tfplugin.bin import datasets
from tfplugin.bin import models
from tfplugin.bin import run_files
from tfplugin.distribute import untuned_inputs
from tfplugin.estimator import sharded_tpu_estimator
from tfplugin.events import event_files
from tfplugin.optimizers import cross_shard

tf1 = tf.compat.v1

_SHUFFLE_BUFFER = 2000
# Settings that do not change the learnt model.
_OF_A_SESSION = ('model_dir', 'train_steps', 'eval_batch_size',
                 'iterations_per_loop', 'master')


@dataclasses.dataclass(frozen=True)
class TpuOptions:
  """The settings of one run; the flags of `train_tpu.py` describe them."""

  model_dir: str
  use_tpu: bool = False
  master: str = ''
  num_shards: int = 2
  iterations_per_loop: int = 100
  train_batch_size: int = 64
  eval_batch_size: int = 64
  train_steps: int = 1500
  learning_rate: float = 2e-3
  data_file: str = ''

  def __post_init__(self):
    """Raises `ValueError` for a setting out of its range."""
    for name in ('num_shards', 'iterations_per_loop', 'train_batch_size',
                 'eval_batch_size', 'train_steps'):
      command_line.check_integer(name, getattr(self, name), 1)
    command_line.check_finite('learning_rate', self.learning_rate,
                              is_positive=True)
    rest = self.train_batch_size % self.num_shards
    if rest and not self.use_tpu:  # A TPU takes any number.
      raise ValueError(
          f'`train_batch_size` must be a multiple of `num_shards`, '
          f'{self.num_shards}. Received: {self.train_batch_size}. Pass e.g. '
          f'{self.train_batch_size - rest + self.num_shards}.')


def model_fn(features, labels, mode, params):
  """Classifies images of digits, `[batch, 64]`, as TPU programs do it."""
  hidden = features
  for index, units in enumerate((128, 64)):
    hidden = tf.nn.relu(models.dense(hidden, units, f'hidden{index}'))
  logits = models.dense(hidden, params['num_classes'], 'logits')
  spec = tf1.estimator.tpu.TPUEstimatorSpec
  if mode == tf.estimator.ModeKeys.PREDICT:
    return spec(mode, predictions={'probabilities': tf.nn.softmax(logits)})
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=labels, logits=logits)
  if mode == tf.estimator.ModeKeys.EVAL:
    return spec(mode, loss=tf.reduce_mean(losses),
                eval_metrics=(_metrics, [labels, logits]))
  loss = tf.reduce_mean(losses)
  optimizer = cross_shard.CrossShardOptimizer(
      tf1.train.AdamOptimizer(params['learning_rate']))
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return spec(mode, loss=loss, train_op=train_op)


def _metrics(labels, logits):
  return {'accuracy': tf1.metrics.accuracy(labels, tf.argmax(logits, 1))}


def train(options: TpuOptions) -> dict[str, Any]:
  """Trains and evaluates; returns the metrics of the held-out rows.

  They have `accuracy`, `loss` and `global_step`. A batch that the held-out rows
  do not fill raises `ValueError`. Damaged data and an unusable model_dir do,
  too.
  """
  split = datasets.load_digits(options.data_file)
  eval_steps = len(split.test.labels) // options.eval_batch_size
  if not eval_steps:
    raise ValueError(
        '`eval_batch_size` must not exceed the held-out rows, '
        f'{len(split.test.labels)}. Received: {options.eval_batch_size}. '
        'Choose a smaller one.')
  estimator = make_estimator(options, split.num_classes)
  # A TPU's model_dir is in a bucket, which only TensorFlow can read.
  if not options.use_tpu:
    _check_model_dir(options.model_dir, split)
    _tell_differences(options)
  estimator.train(make_input_fn(split.train, True),
                  max_steps=options.train_steps)
  return estimator.evaluate(make_input_fn(split.test, False), steps=eval_steps)


def _check_model_dir(model_dir: str, split: datasets.Split) -> None:
  """Raises `ValueError` unless a run can start, or continue, in `model_dir`."""
  expected = run_files.variable_shapes(
      model_fn, split.test.inputs[:1], split.test.labels[:1],
      tf.estimator.ModeKeys.EVAL, {'num_classes': split.num_classes})
  run_files.check_model_dir(model_dir, expected)
  run_files.make_dir('model_dir', model_dir)


def _tell_differences(options: TpuOptions) -> None:
  """Warns of settings that differ from the last run's; adds these to a file."""
  path = pathlib.Path(options.model_dir, 'train_tpu_options.json')
  known = json.loads(path.read_text()) if path.exists() else []
  now = dataclasses.asdict(options)
  before = known[-1] if known else now
  changed = [f'{name}={now[name]} (was {before[name]})' for name in now
             if name in before and name not in _OF_A_SESSION
             and before[name] != now[name]]
  if changed:
    tf1.logging.warning(
        'The training in %s continues with other settings: %s. To train '
        'separately choose another --model_dir.', options.model_dir,
        ', '.join(changed))
  if not known or before != now:
    event_files.write_whole(path, json.dumps([*known, now], indent=2) + '\n')


def make_estimator(options: TpuOptions, num_classes: int):
  """Returns the Estimator of a run."""
  config = tf1.estimator.tpu.RunConfig(
      master=options.master or None,
      model_dir=options.model_dir,
      tf_random_seed=1,
      tpu_config=tf1.estimator.tpu.TPUConfig(
          num_shards=options.num_shards,
          iterations_per_loop=options.iterations_per_loop))
  return sharded_tpu_estimator.ShardedTPUEstimator(
      model_fn,
      config=config,
      use_tpu=options.use_tpu,
      train_batch_size=options.train_batch_size,
      eval_batch_size=options.eval_batch_size,
      params={'learning_rate': options.learning_rate,
              'num_classes': num_classes})


def make_input_fn(examples: datasets.Examples, is_training: bool) -> Callable:
  """Returns an input_fn that reads its batch size from `params`."""

  def input_fn(params):
    data = tf1.data.Dataset.from_tensor_slices(
        (examples.inputs, examples.labels))
    if is_training:
      data = data.shuffle(_SHUFFLE_BUFFER, seed=1).repeat()
    # A TPU needs static shapes.
    return untuned_inputs.untuned(
        data.batch(params['batch_size'], drop_remainder=True))

  return input_fn
