# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A strategy that only packs trains as TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.packed import packed_programs
from tests.programs import accumulation
from tfplugin import distribute
from tfplugin.testing import clusters


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=2)


@pytest.mark.parametrize('program', packed_programs.PROGRAMS)
def test_trains_as_tensorflows_strategy(behavior, cluster, program):
  del behavior
  build = packed_programs.PROGRAMS[program]
  few, values = packed_programs.trained('plain, strategy', cluster, build)
  many, expected = packed_programs.by_strategy(
      packed_programs.tensorflows, cluster,
      packed_programs.model_of(build, packed_programs.sgd))
  assert sum(few.values()) < sum(many.values())
  assert values.keys() == expected.keys()
  for name, value in values.items():
    np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_an_optimizer_in_a_branch(behavior, tmp_path):
  """TensorFlow's own strategy refuses it in control flow v2."""
  del behavior
  program = accumulation.PROGRAM
  values = []
  for name, strategy in (
      ('one', None), ('packed', distribute.PackedParameterServerStrategy())):
    estimator = tf.estimator.Estimator(
        program.model_fn, config=tf.estimator.RunConfig(
            str(tmp_path / name), train_distribute=strategy))
    estimator.train(lambda: program.dataset(4), steps=4)
    values.append(estimator.get_variable_value('kernel'))
  np.testing.assert_array_equal(*values)
