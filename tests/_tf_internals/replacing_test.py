# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients are noted and taken otherwise; sizes are ops; all summaries."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import losses
from tfplugin._tf_internals import replacing

tf1 = tf.compat.v1


def _gradients(x):
  """Each way to take the gradient of x ** 2."""
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = x ** 2
  branch = tf.cond(x > 0, lambda: x ** 2, lambda: x)
  return [tf.gradients(x ** 2, x)[0], tf1.gradients([x ** 2], [x])[0],
          tf.gradients(branch, x)[0], tape.gradient(y, x)]


def test_gradients_are_taken_otherwise(behavior):
  def take(helper, arguments):
    arguments['ys'] = [3 * y for y in tf.nest.flatten(arguments['ys'])]
    return helper(**arguments)

  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(5.0, [])
    with replacing.gradients_through(lambda: True, take):
      found = _gradients(x)
    with replacing.gradients_through(lambda: False, take):
      others = _gradients(x)
    # A tape is left alone.
    assert session.run(found) == [30.0] * 3 + [10.0]
    assert session.run([*others, *_gradients(x)]) == [10.0] * 8


def test_gradients_are_noted_once_where_it_applies(behavior):
  for applies in (True, False):
    noted = []
    with tf.Graph().as_default(), replacing.gradients_noted(
        lambda applies=applies: applies, noted.append):
      found = _gradients(tf.constant(5.0))
    assert list(map(id, noted)) == (list(map(id, found)) if applies else [])


SIZES = {
    'shape': tf.shape, 'shape_v1': tf1.shape, 'size': tf.size,
    'size_v1': tf1.size, 'ones_like': tf.ones_like,
    'ones_like_v1': tf1.ones_like, 'zeros_like': tf.zeros_like,
    'zeros_like_v1': tf1.zeros_like,
    'of_a_dtype': lambda x: tf.ones_like(x, tf.int32)}


def _read(make, applies):
  """Whether what `make` makes of a placeholder depends on it."""
  with tf.Graph().as_default() as graph, replacing.sizes_as_ops(applies):
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
  with replacing.sizes_as_ops(lambda _: True):
    assert _read(tf1.shape, lambda _: False)[0]


def test_afterwards_all_is_as_before():
  with pytest.raises(KeyError), replacing.sizes_as_ops(lambda _: True):
    raise KeyError
  with tf.Graph().as_default():
    assert not tf.shape(tf1.placeholder(tf.float32, [4])).op.inputs


def _summaries():
  """The values of the scalar summaries of two replicas."""
  strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default() as graph, strategy.scope():
    value = tf.constant(2.0)
    strategy.run(lambda: tf1.summary.scalar('x', value))
    found = [losses.summarized_value(op) for op in graph.get_operations()]
  assert all(each is None or each is value for each in found)
  return sum(each is value for each in found)


def test_every_replica_makes_them_for_a_while(behavior):
  with replacing.summaries_of_all(lambda: True):
    assert _summaries() == 2
  with replacing.summaries_of_all(lambda: False):
    assert _summaries() == 1
  assert _summaries() == 1
