# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is said of an exchange that is refused."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs


def test_the_copy_that_is_not_finite_is_named_and_not_its_centre(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter)
    optimizer = elastic_graphs.make_optimizer(
        getter, elastic_graphs.sgd(0.5), on_nonfinite='raise')
    # The gradient is finite, and the copy is not.
    train_op = optimizer.minimize(tf.minimum(w.value(), 2.0))
    with elastic_graphs.session(optimizer) as session:
      session.run(w.assign(math.inf))
      with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        session.run(train_op)
  assert f'in the update of] [{w.name}]' in raised.value.message
