# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the terms of a loss."""

import pytest
import tensorflow as tf

from tfplugin._tf_internals import losses

tf1 = tf.compat.v1


@pytest.mark.parametrize('make, signs', [
    (lambda a, b: a + b, [1, 1]), (lambda a, b: a - b, [1, -1]),
    (lambda a, b: -a, [-1]), (lambda a, b: tf.add_n([a, b]), [1, 1]),
    (lambda a, b: tf.stack([a, b]), [1, 1]), (lambda a, b: tf.identity(a), [1]),
    (lambda a, b: tf.identity_n([b, a])[1], [1]),
    (lambda a, b: tf.concat([a, b], 0), [1, 1]),
    (lambda a, b: a * b, []), (lambda a, b: tf.sqrt(a), [])])
def test_addends(make, signs):
  with tf.Graph().as_default():
    a, b = (tf1.placeholder(tf.float32, [1]) for _ in range(2))
    found = losses.addends(make(a, b))
    assert [sign for _, sign in found] == signs
    assert [term for term, _ in found] == [a, b][:len(signs)]


def test_factors():
  with tf.Graph().as_default():
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    assert losses.factors(a * b) == (a, b, False)
    assert losses.factors(a / b) == (a, b, True)
    assert losses.factors(a + b) is None


def test_alternatives(behavior):
  with tf.Graph().as_default():
    a, b = (tf1.placeholder(tf.float32, []) for _ in range(2))
    assert losses.alternatives(tf.where(a > 0, a, b)) == [a, b]
    chosen = tf.cond(a > 0, lambda: a + 1, lambda: b)
    if chosen.op.type == 'Identity':
      chosen, = chosen.op.inputs
    assert len(losses.alternatives(chosen)) == 2
    assert not losses.alternatives(a + b)
