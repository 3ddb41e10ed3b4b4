# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.estimator; old_names_test.py walks its names."""

import functools

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.contrib import estimator

tf1 = tf.compat.v1


def test_holds_the_public_classes_and_functions():
  for ours in estimator.OLD.ours:
    assert getattr(tfplugin, ours.__name__) is ours
    assert getattr(estimator, ours.__name__) is ours


def test_another_name_says_what_is_held():
  first = estimator.__all__[0]
  with pytest.raises(AttributeError, match=(
      rf'contrib\.estimator\.Lost.*It holds contrib\.estimator\.{first}')):
    estimator.Lost  # noqa: B018 (the access raises)


def test_head_makes_the_spec_of_an_old_model_fn(behavior):
  del behavior
  head = estimator.regression_head(weight_column='weight')
  with tf.Graph().as_default(), tf1.Session() as session:
    step = tf1.train.create_global_step()
    bias = tf1.get_variable('bias', initializer=1.0)
    spec = head.create_estimator_spec(
        features={'weight': tf.constant([[1.0], [3.0]])},
        mode=tf.estimator.ModeKeys.TRAIN,
        logits=bias * tf.ones([2, 1]),
        labels=tf.constant([[2.0], [4.0]]),
        train_op_fn=functools.partial(
            tf1.train.GradientDescentOptimizer(0.1).minimize, global_step=step))
    session.run(tf1.global_variables_initializer())
    loss, _ = session.run([spec.loss, spec.train_op])
    # (1 * 1**2 + 3 * 3**2) / 2; its derivative is -(1 * 1 + 3 * 3).
    assert loss == 14.0
    assert session.run([bias, step]) == pytest.approx([2.0, 1])
