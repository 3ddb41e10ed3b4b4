# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of updates that are not finite; on_nonfinite_test trains."""

import json

import pytest
import tensorflow as tf

from tfplugin.distribute.updates import finite_updates

tf1 = tf.compat.v1


@pytest.mark.parametrize('policy', ['drop', 'raise'])
def test_finite_updates_are_made(behavior, policy):
  with tf.Graph().as_default(), tf1.Session() as session:
    assert session.run(finite_updates.accepted(
        policy, [tf.constant(1.0)], ['v'], tf.constant(5)))


def test_an_error_names_worker_step_and_variables(behavior, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'worker': ['localhost:1'] * 4},
      'task': {'type': 'worker', 'index': 3}}))
  with tf.Graph().as_default(), tf1.Session() as session:
    values = [tf.constant(value) for value in (
        [1.0, 2.0], [[float('nan'), 1.0]], float('-inf'))]
    dropped = finite_updates.accepted('drop', values, list('abc'),
                                 tf.constant(17))
    raised = finite_updates.accepted('raise', values, list('abc'),
                                tf.constant(17))
    assert not session.run(dropped)
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
        r'(?s)worker:3, at step.*17.*update of.*b.*c')):
      session.run(raised)


def test_the_summary_counts_what_may_be_dropped(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    updates = finite_updates.FiniteUpdates('drop', 'counter')
    updates.summarize('before')
    assert not tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    updates.accepted([tf.constant(1.0)], ['v'], tf.constant(5))
    updates.summarize('drops')
    session.run(tf1.local_variables_initializer())
    for _ in range(3):
      session.run(updates.count())
    summary, = session.run(tf1.get_collection(tf1.GraphKeys.SUMMARIES))
  assert [(value.tag, value.simple_value) for value in
          tf1.Summary.FromString(summary).value] == [('drops', 3.0)]


def test_there_is_no_summary_without_a_plain_graph():
  updates = finite_updates.FiniteUpdates('drop', 'counter')
  updates.accepted([tf.constant(1.0)], ['v'], tf.constant(5))
  assert updates.num_nonfinite is not None

  @tf.function
  def step():
    updates.summarize('inside')
    return tf1.get_collection(tf1.GraphKeys.SUMMARIES) == []

  updates.summarize('eager')
  assert step()
