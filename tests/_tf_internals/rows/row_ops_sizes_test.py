# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes are ops that read their tensor."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals.rows import row_ops

tf1 = tf.compat.v1


SIZES = {
    'shape': tf.shape, 'shape_v1': tf1.shape, 'size': tf.size,
    'size_v1': tf1.size, 'ones_like': tf.ones_like,
    'ones_like_v1': tf1.ones_like, 'zeros_like': tf.zeros_like,
    'zeros_like_v1': tf1.zeros_like,
    'of_a_dtype': lambda x: tf.ones_like(x, tf.int32)}


def _read(make, applies):
  """Whether what `make` makes of a placeholder depends on it."""
  with tf.Graph().as_default() as graph, row_ops.sizes_as_ops(applies):
    x = tf1.placeholder(tf.float32, [4, 3])
    made = make(x)
    with tf1.Session(graph=graph) as session:
      try:
        session.run(made)
      except tf.errors.InvalidArgumentError:
        return True, made.shape.as_list()
  return False, made.shape.as_list()


@pytest.mark.parametrize('name', SIZES)
def test_a_size_reads_its_tensor(name):
  as_op, shape = _read(SIZES[name], lambda _: True)
  assert as_op
  assert (False, shape) == _read(SIZES[name], lambda _: False)


def test_contexts_may_be_nested():
  with row_ops.sizes_as_ops(lambda _: True):
    assert _read(tf1.shape, lambda _: False)[0]


def test_afterwards_all_is_as_before():
  with pytest.raises(KeyError), row_ops.sizes_as_ops(lambda _: True):
    raise KeyError
  with tf.Graph().as_default():
    assert not tf.shape(tf1.placeholder(tf.float32, [4])).op.inputs
