# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients are noted, and computed otherwise."""

from __future__ import annotations

import tensorflow as tf

from tfplugin._tf_internals import optimizers

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
  def take(helper, **arguments):
    arguments['ys'] = [3 * y for y in tf.nest.flatten(arguments['ys'])]
    return helper(**arguments)

  # A tape and other graphs are left alone.
  for is_taken, expected in ((True, [30.0] * 3 + [10.0]), (False, [10.0] * 4)):
    with tf.Graph().as_default() as graph, tf1.Session() as session:
      if is_taken:
        optimizers.gradients_of_graph_through(graph, take)
      x = tf1.placeholder_with_default(5.0, [])
      assert session.run(_gradients(x)) == expected


def test_gradients_of_a_graph_are_taken_by_all_that_were_given(behavior):
  def tripling(helper, **arguments):
    return [3 * gradient for gradient in helper(**arguments)]

  def adding(helper, **arguments):
    return [1 + gradient for gradient in helper(**arguments)]

  with tf.Graph().as_default() as graph, tf1.Session() as session:
    x = tf1.placeholder_with_default(5.0, [])
    for take in (tripling, adding, adding):
      optimizers.gradients_of_graph_through(graph, take)
    assert session.run(_gradients(x)) == [31.0] * 3 + [10.0]
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(_gradients(tf.constant(5.0))) == [10.0] * 4


def test_gradients_are_noted_once_where_it_applies(behavior):
  for applies in (True, False):
    noted = []
    with tf.Graph().as_default(), optimizers.gradients_noted(
        lambda applies=applies: applies, noted.append):
      found = _gradients(tf.constant(5.0))
    assert [id(gradient) for gradient, _ in noted] == (
        list(map(id, found)) if applies else [])
    assert [losses[0].op.type for _, losses in noted].count('Pow') == (
        3 * applies)
