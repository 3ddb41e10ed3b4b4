# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the TPUEstimator program, off TPU."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import train_tpu_lib

tf1 = tf.compat.v1


def _weights(model_dir):
  reader = tf.train.load_checkpoint(str(model_dir))
  return {name: reader.get_tensor(name)
          for name in reader.get_variable_to_shape_map()
          if 'kernel' in name and 'Adam' not in name}


def _train(tmp_path, num_shards, train_steps):
  return train_tpu_lib.train(train_tpu_lib.TpuOptions(
      model_dir=str(tmp_path / str(num_shards)), num_shards=num_shards,
      train_steps=train_steps))


def test_four_shards_give_the_weights_of_one(tmp_path):
  one = _train(tmp_path, 1, 10)
  four = _train(tmp_path, 4, 10)
  assert four['accuracy'] == pytest.approx(one['accuracy'], abs=1 / 320)
  expected = _weights(tmp_path / '1')
  actual = _weights(tmp_path / '4')
  assert len(expected) == 3
  for name, value in expected.items():
    # Adam divides by the gradient's size: a rounding of a gradient near 0
    # moves a weight by up to the learning rate, 2e-3, in rare places.
    apart = np.abs(actual[name] - value)
    assert np.mean(apart) < 1e-6
    assert np.max(apart) < 10 * 2e-3


def test_learns_the_digits(tmp_path):
  assert _train(tmp_path, 2, 400)['accuracy'] > 0.9


def test_eval_batch_that_the_held_out_rows_do_not_fill_is_refused(tmp_path):
  with pytest.raises(ValueError, match='`eval_batch_size` .* Received: 4096'):
    train_tpu_lib.train(train_tpu_lib.TpuOptions(
        model_dir=str(tmp_path), eval_batch_size=4096))


def test_a_foreign_checkpoint_is_refused_and_kept(tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('embedding', [2], initializer=tf1.zeros_initializer())
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, str(tmp_path / '2' / 'model.ckpt'), 3)
  before = {p: p.read_bytes() for p in (tmp_path / '2').iterdir()}
  with pytest.raises(ValueError, match='`hidden0/kernel` is missing'):
    _train(tmp_path, 2, 10)
  assert {p: p.read_bytes() for p in (tmp_path / '2').iterdir()} == before


def test_a_model_dir_that_is_a_file_is_refused(tmp_path):
  (tmp_path / '2').write_text('')
  with pytest.raises(ValueError, match='`model_dir` must be a directory'):
    _train(tmp_path, 2, 10)


def test_on_a_tpu_each_gradient_is_summed_once_over_the_shards():
  # Built and not run: there is no TPU.
  def build():
    spec = train_tpu_lib.model_fn(
        tf.zeros([8, 64]), tf.zeros([8], tf.int32),
        tf.estimator.ModeKeys.TRAIN,
        {'num_classes': 10, 'learning_rate': 1e-3, 'batch_size': 8})
    return spec.train_op

  with tf.Graph().as_default() as graph:
    tf1.train.create_global_step()
    tf1.tpu.shard(build, num_shards=2)
    num_variables = len(tf1.trainable_variables())
  sums = [op for op in graph.get_operations() if op.type == 'CrossReplicaSum']
  assert num_variables == 6
  assert len(sums) == num_variables
  for op in sums:
    np.testing.assert_array_equal(
        tf.get_static_value(op.inputs[1]), [[0, 1]])


def test_with_a_tpu_the_estimator_takes_any_number_of_shards(tmp_path):
  # The number of shards is the TPU's: none is counted, none is built here.
  estimator = train_tpu_lib.make_estimator(
      train_tpu_lib.TpuOptions(
          model_dir=str(tmp_path), use_tpu=True, master='grpc://10.0.0.1:8470',
          num_shards=3), 10)
  assert isinstance(estimator, tf1.estimator.tpu.TPUEstimator)
  assert estimator.config.master == 'grpc://10.0.0.1:8470'


def test_what_differs_from_the_run_before_is_said(tmp_path, caplog):
  options = train_tpu_lib.TpuOptions(
      model_dir=str(tmp_path), train_steps=1, train_batch_size=4)
  with caplog.at_level('WARNING', logger='tensorflow'):
    for settings, said in (({}, ''), ({'train_steps': 2}, ''), (
        {'train_steps': 3, 'learning_rate': 0.5, 'train_batch_size': 8},
        'train_batch_size=8 (was 4), learning_rate=0.5 (was 0.002)')):
      train_tpu_lib.train(dataclasses.replace(options, **settings))
      told = [r.getMessage() for r in caplog.records
              if 'continues with other settings' in r.getMessage()]
      assert [said in text for text in told] == ([True] if said else [])
  # All that were used are there, the newest last.
  known = json.loads((tmp_path / 'train_tpu_options.json').read_text())
  assert [one['train_steps'] for one in known] == [1, 2, 3]


def test_settings_that_an_earlier_version_did_not_have_are_no_difference(
    tmp_path, caplog):
  path = tmp_path / 'train_tpu_options.json'
  path.write_text('[{"train_steps": 1, "learning_rate": 0.5, "gone": 3}]')
  options = train_tpu_lib.TpuOptions(
      model_dir=str(tmp_path), train_steps=1, train_batch_size=4)
  with caplog.at_level('WARNING', logger='tensorflow'):
    train_tpu_lib.train(options)
  assert ['settings: learning_rate=0.002 (was 0.5). ' in r.getMessage()
          for r in caplog.records
          if 'continues with other settings' in r.getMessage()] == [True]
  assert json.loads(path.read_text())[-1] == dataclasses.asdict(options)
