# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients are taken of what stands in for a target, once."""

from __future__ import annotations

import tensorflow as tf

from tfplugin._tf_internals import gradients

tf1 = tf.compat.v1


def _tripled(applies=True):
  return gradients.gradient_factors(
      lambda: applies, lambda target, sources, gradient: 3 * target,
      lambda target, sources: 3.0)


def _gradients(x):
  """Each way to take the gradient of x ** 2."""
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = x ** 2
  branch = tf.cond(x > 0, lambda: x ** 2, lambda: x)
  return [tf.gradients(x ** 2, x)[0], tf1.gradients([x ** 2], [x])[0],
          tf.gradients(branch, x)[0], tape.gradient(y, x)]


def test_a_target_is_replaced_and_a_tape_multiplied(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(5.0, [])
    with _tripled():
      found = _gradients(x)
    with _tripled(applies=False):
      others = _gradients(x)
    assert session.run(found) == [30.0] * 4
    assert session.run([*others, *_gradients(x)]) == [10.0] * 8


def test_gradients_of_targets_are_kept():
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf.constant(5.0)
    with _tripled():
      with tf.GradientTape() as tape:
        tape.watch(x)
        y = x ** 2
      found = [tape.gradient(y, x, output_gradients=tf.constant(2.0)),
               tf.gradients(y, x, tf.constant(2.0))[0]]
    assert session.run(found) == [60.0, 60.0]


def test_no_factor_leaves_a_tape_alone():
  with tf.Graph().as_default(), tf1.Session() as session, (
      gradients.gradient_factors(lambda: True, lambda y, xs, g: y,
                                 lambda y, xs: None)):
    assert session.run(_gradients(tf.constant(5.0))) == [10.0] * 4


def test_gradients_are_noted_once_where_it_applies(behavior):
  for applies in (True, False):
    noted = []
    with tf.Graph().as_default(), gradients.gradient_factors(
        lambda applies=applies: applies, lambda y, xs, g: y,
        lambda y, xs: None, noted.append):
      found = _gradients(tf.constant(5.0))
    assert list(map(id, noted)) == (list(map(id, found)) if applies else [])
