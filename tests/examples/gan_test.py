# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The game of two optimizers on two towers against itself on one device."""

import shutil

import numpy as np
import pytest

from tfplugin.bin import datasets


@pytest.mark.usefixtures('behavior')
def test_two_towers_go_on_as_one_device_does(tmp_path, load_example):
  example = load_example('examples/gan.py')
  input_fn = example.make_input_fn(datasets.load_digits().train, 15, True)
  one = example.make_estimator(str(tmp_path / 'one'), 1)
  one.train(input_fn, max_steps=1)
  # Both go on from one checkpoint: random initial values depend on the graph.
  shutil.copytree(tmp_path / 'one', tmp_path / 'two')
  one.train(input_fn, max_steps=2)
  two = example.make_estimator(str(tmp_path / 'two'), 2)
  two.train(input_fn, max_steps=2)
  assert set(one.get_variable_names()) == set(two.get_variable_names())
  assert one.get_variable_value('global_step') == 2
  assert two.get_variable_value('global_step') == 2
  for name in one.get_variable_names():
    # Adam's moments hold the gradients; a weight's own step is the gradient
    # divided by its size, which makes 2e-3 of a rounding near 0.
    tolerance = 1e-6 if 'Adam' in name else 4e-3
    np.testing.assert_allclose(
        two.get_variable_value(name), one.get_variable_value(name),
        rtol=1e-4, atol=tolerance, err_msg=name)


def test_both_players_learn(tmp_path, load_example):
  example = load_example('examples/gan.py')
  split = datasets.load_digits()
  estimator = example.make_estimator(str(tmp_path), 2)
  estimator.train(example.make_input_fn(split.train, 64, True), max_steps=100)
  metrics = estimator.evaluate(example.make_input_fn(split.test, 64, False))
  # Neither has won: the discriminator still tells them apart, but not surely.
  assert 0.01 < metrics['fake_seems_real'] < metrics['real_seems_real'] < 0.99
