# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns of exchanges, and their encoding in the number of a step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_pairs

tf1 = tf.compat.v1


def _pairs(count):
  return [elastic_pairs.Pair((), None, True) for _ in range(count)]


def _turn(pairs, calls_before=0):
  """A turn that another call has taken, if there was one."""
  turn = elastic_pairs.Turn(pairs)
  for _ in range(calls_before):
    tf1.add_to_collection('before', turn.take(tf.constant(True)))
  return turn


@pytest.mark.parametrize('taken', [(True, True), (True, False), (False, True)])
def test_a_number_has_the_turns_of_the_variables(behavior, taken):
  del behavior
  a, b, c = _pairs(3)
  with tf.Graph().as_default():
    all_turns = [_turn([pair], not mine) for pair, mine in zip((a, b), taken)]
    turns = elastic_pairs.StepTurns([*all_turns, _turn([])])
    due = tf.constant(True)
    with tf1.control_dependencies(tf1.get_collection('before')):
      number = turns.join(tf.constant(7, tf.int64), [a, b, c], due)
      again = turns.join(tf.constant(8, tf.int64), [b], due)  # Asks no more.
    step, (of_a, of_b, of_c) = turns.split(number, [a, b, c])
    second, (again_of_b,) = turns.split(again, [b])
    assert of_c is None
    with tf1.Session() as session:
      session.run([turn.variable.initializer for turn in all_turns])
      for _ in range(2):
        assert session.run([step, of_a, of_b, second, again_of_b]) == [
            7, *taken, 8, taken[1]]


def test_a_call_in_a_branch_gets_its_turn_in_each_run(behavior):
  """Under v2 behaviour it compared with a count that was read too late."""
  del behavior
  with tf.Graph().as_default():
    turn = elastic_pairs.Turn([])
    should = tf1.placeholder(tf.bool, [])
    takes = [tf.cond(should, lambda: turn.take(tf.constant(True)),
                     lambda: False) for _ in range(4)]
    with tf1.Session() as session:
      session.run(turn.variable.initializer)
      for number in range(50):
        assert sum(session.run(takes, {should: True})) == 1
        assert session.run(takes[number % 4], {should: True})
        assert not any(session.run(takes, {should: False}))


def test_without_turns_the_number_is_that_of_the_step():
  pairs = _pairs(2)
  turns = elastic_pairs.StepTurns()
  assert turns.join(7, pairs, True) == 7
  assert turns.split(7, pairs) == (7, [None, None])


def test_the_rate_is_0_without_a_turn():
  rates = elastic_pairs.rates_of(
      0.25, [None, tf.constant(True), tf.constant(False)])
  assert [float(rate) for rate in rates] == [0.25, 0.25, 0.0]
