# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns of exchanges, and their encoding in the number of a step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import exchange_turns


def _pairs(count):
  return [elastic_pairs.Pair((), None, True) for _ in range(count)]


@pytest.mark.parametrize('taken', [(True, True), (True, False), (False, True)])
def test_a_number_has_the_turns_of_the_variables(taken):
  a, b, c = _pairs(3)
  asked = []

  def turn(pairs, mine):

    def take(due):
      asked.append(pairs)
      return tf.logical_and(due, mine)

    return exchange_turns.Turn(pairs, take)

  turns = exchange_turns.StepTurns(
      [turn({a}, taken[0]), turn({b}, taken[1]), turn(set(), True)])
  number = turns.join(tf.constant(7, tf.int64), [a, b, c], tf.constant(True))
  again = turns.join(tf.constant(8, tf.int64), [b], tf.constant(True))
  assert asked == [{a}, {b}]
  step, (of_a, of_b, of_c) = turns.split(number, [a, b, c])
  assert (int(step), bool(of_a), bool(of_b), of_c) == (7, *taken, None)
  step, (of_b,) = turns.split(again, [b])
  assert (int(step), bool(of_b)) == (8, taken[1])


def test_without_turns_the_number_is_that_of_the_step():
  pairs = _pairs(2)
  turns = exchange_turns.StepTurns()
  assert turns.join(7, pairs, True) == 7
  assert turns.split(7, pairs) == (7, [None, None])


def test_the_rate_is_0_without_a_turn():
  rates = exchange_turns.rates_of(
      0.25, [None, tf.constant(True), tf.constant(False)])
  assert [float(rate) for rate in rates] == [0.25, 0.25, 0.0]
