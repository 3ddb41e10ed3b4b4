# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The image classifier on two towers against itself on one device."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import datasets

tf1 = tf.compat.v1


@pytest.mark.usefixtures('behavior')
def test_two_towers_go_on_as_one_device_does(tmp_path, load_example):
  example = load_example('examples/image_classifier.py')
  split = datasets.load_digits()
  # 15 rows do not split evenly.
  input_fn = example.make_input_fn(split.train, 15, True)
  one = example.make_estimator(str(tmp_path / 'one'), 1)
  one.train(input_fn, max_steps=1)
  # Both go on from one checkpoint: random initial values depend on the graph.
  shutil.copytree(tmp_path / 'one', tmp_path / 'two')
  one.train(input_fn, max_steps=2)
  two = example.make_estimator(str(tmp_path / 'two'), 2)
  two.train(input_fn, max_steps=2)
  assert set(one.get_variable_names()) == set(two.get_variable_names())
  for name in one.get_variable_names():
    # Adam's moments hold the gradients; a weight's own step is the gradient
    # divided by its size, which makes 2e-3 of a rounding near 0.
    tolerance = 1e-6 if 'Adam' in name else 4e-3
    np.testing.assert_allclose(
        two.get_variable_value(name), one.get_variable_value(name),
        rtol=1e-4, atol=tolerance, err_msg=name)


def test_learns_evaluates_and_exports_any_batch(tmp_path, load_example):
  example = load_example('examples/image_classifier.py')
  split = datasets.load_digits()
  estimator = example.make_estimator(str(tmp_path), 2)
  estimator.train(example.make_input_fn(split.train, 50, True), max_steps=150)
  # 359 rows: the last batch has 9, an odd number.
  metrics = estimator.evaluate(example.make_input_fn(split.test, 50, False))
  assert metrics['accuracy'] > 0.85
  path = estimator.export_saved_model(str(tmp_path / 'export'),
                                      example.serving_input_fn)
  predict = tf.saved_model.load(path.decode()).signatures['classify']
  for rows in (1, 3, 8):
    classes = predict(image=tf.constant(split.test.inputs[:rows]))['classes']
    assert classes.shape == (rows,)
