# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a run's Estimator and its input, in one process."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import experiment
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin import status
from tfplugin.bin import tf_config


def _options(model_dir, **kwargs):
  return options_lib.TrainOptions(model_dir=str(model_dir), workers=0, **kwargs)


def _batches(input_fn, count):
  return [[part.numpy() for part in batch] for batch in input_fn().take(count)]


def test_training_batches_are_whole_and_go_on_for_ever(tmp_path):
  parts = experiment.make_experiment(
      _options(tmp_path, wrapper='none', batch_size=1000))
  batches = _batches(parts.train_spec.input_fn, 4)
  assert [len(labels) for _, labels in batches] == [1000] * 4


def test_evaluation_sees_each_held_out_row_once(tmp_path):
  parts = experiment.make_experiment(_options(tmp_path, wrapper='none'))
  batches = _batches(parts.eval_spec.input_fn, 99)
  data = experiment.load_data(_options(tmp_path, wrapper='none'))
  np.testing.assert_array_equal(np.concatenate([b[1] for b in batches]),
                                data.test.labels)


def test_no_worker_is_held_back(tmp_path):
  config = experiment.make_experiment(
      _options(tmp_path, wrapper='none')).estimator.config
  assert config.experimental_max_worker_delay_secs == 0


@pytest.mark.parametrize('wrapper', ['none', 'variable_clipping', 'drop_stale'])
def test_a_process_alone_trains_and_says_where_it_is(tmp_path, wrapper):
  options = options_lib.TrainOptions(model_dir=str(tmp_path), wrapper=wrapper,
                                     workers=0, steps=5)
  run_files.status_dir(tmp_path).mkdir()
  parts = experiment.make_experiment(options)
  parts.estimator.train(parts.train_spec.input_fn, max_steps=5)
  last = status.read_last(
      run_files.status_path(tmp_path, tf_config.Task('chief', 0)))
  assert last.local_steps == 5
  assert int(tf.train.load_checkpoint(str(tmp_path)).get_tensor(
      'global_step')) == 5
  metrics = parts.estimator.evaluate(parts.eval_spec.input_fn)
  assert 0.0 < metrics['accuracy'] <= 1.0
