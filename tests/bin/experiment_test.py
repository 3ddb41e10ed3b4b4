# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a run's Estimator and its input, in one process."""

import numpy as np

from tfplugin.bin import experiment
from tfplugin.bin import options as options_lib


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
