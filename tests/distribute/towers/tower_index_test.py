# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the index of the tower."""

import tensorflow as tf

from tfplugin.distribute.towers import tower_index
from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_weights


def test_is_the_index_in_a_tower_and_0_elsewhere(behavior):
  strategy = tower_strategy.TowerStrategy(['/cpu:0'] * 3)
  with tf.Graph().as_default(), strategy.scope():
    _, towers = strategy.build_towers(
        lambda tower: tower_index.current_tower(),
        tower_weights.TowerWeights([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]))
    assert tower_index.current_tower() == 0
  assert towers == [0, 1, 2]
