# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The transformer on two shards against its rule, written out on one device."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1
_STEPS = 1
_PARAMS = {'learning_rate': 3e-3, 'train_steps': 100}


def _reference(example, model_dir, features, num_words):
  """Goes on from `model_dir`: halves of the batch are clipped, then summed."""
  with tf.Graph().as_default(), tf1.Session() as session:
    data = tf1.data.make_one_shot_iterator(
        example.make_input_fn(features, True)({'batch_size': 8}))
    batch, _ = data.get_next()
    step = tf1.train.get_or_create_global_step()
    clipped = []
    for half in (slice(0, 4), slice(4, 8)):
      with tf1.variable_scope('', reuse=tf1.AUTO_REUSE):
        spec = example.model_fn(
            {name: value[half] for name, value in batch.items()}, None,
            tf.estimator.ModeKeys.EVAL, {**_PARAMS, 'num_words': num_words})
      variables = tf1.trainable_variables()
      clipped.append(
          tf.clip_by_global_norm(tf.gradients(spec.loss, variables), 1.0)[0])
    rate = tf1.train.polynomial_decay(
        _PARAMS['learning_rate'], step, _PARAMS['train_steps'], 0.0)
    update = example.DecayedAdamOptimizer(rate).apply_gradients(
        [(a + b, v) for a, b, v in zip(*clipped, variables)])
    with tf.control_dependencies([update]):
      train_op = tf.group(tf1.assign_add(step, 1))
    tf1.train.Saver().restore(session, tf.train.latest_checkpoint(model_dir))
    for _ in range(_STEPS):
      session.run(train_op)
    return {v.op.name: session.run(v) for v in tf1.global_variables()}


@pytest.mark.sampled(3)
@pytest.mark.usefixtures('behavior')
def test_two_shards_clip_alone_and_sum(tmp_path, load_example):
  example = load_example('examples/transformer_pretraining.py')
  features, num_words = example.load_features()
  features = {name: rows[:64] for name, rows in features.items()}
  params = {**_PARAMS, 'num_words': num_words}
  input_fn = example.make_input_fn(features, True)
  start = str(tmp_path / 'start')
  example.make_estimator(start, 1, 8, params).train(input_fn, max_steps=1)
  shutil.copytree(start, tmp_path / 'two')
  two = example.make_estimator(str(tmp_path / 'two'), 2, 8, params)
  two.train(input_fn, max_steps=1 + _STEPS)
  expected = _reference(example, start, features, num_words)
  assert set(expected) == set(two.get_variable_names())
  for name, value in expected.items():
    # The moments hold the gradients; a weight's own step is the gradient
    # divided by its size, which makes 3e-3 of a rounding near 0.
    tolerance = 1e-6 if 'moment' in name else 6e-3
    np.testing.assert_allclose(
        two.get_variable_value(name), value, rtol=1e-4, atol=tolerance,
        err_msg=name)



@pytest.mark.sampled(3)
def test_learns_to_guess_words(tmp_path, load_example):
  example = load_example('examples/transformer_pretraining.py')
  features, num_words = example.load_features()
  estimator = example.make_estimator(
      str(tmp_path), 2, 32, {**_PARAMS, 'num_words': num_words})
  estimator.train(example.make_input_fn(features, True), max_steps=100)
  metrics = estimator.evaluate(example.make_input_fn(features, False), steps=20)
  # Guessing at random from 1000 words is right once in 1000.
  assert metrics['accuracy'] > 0.05
  assert np.isfinite(metrics['loss'])
