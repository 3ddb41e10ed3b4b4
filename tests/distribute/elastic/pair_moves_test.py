# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a communication moves, and what of it crosses the network."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import pair_moves
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

_PS = '/job:ps/task:0'
_WORKER = '/job:worker/task:0'


def _move(pair, moving_rate):
  differences, = pair_moves.receive_all([pair], [moving_rate])
  return pair_moves.move(pair, differences)


def _pair(center=0.0, device='', use_resource=True, **kwargs):
  getter = elastic_custom_getter.ElasticAverageCustomGetter(device)
  with getter.scope():
    tf1.get_variable('w', initializer=np.float32(center),
                     use_resource=use_resource, **kwargs)
  return getter.pairs[0]


def _run(session, pair, copy, op):
  session.run(tf1.global_variables_initializer())
  session.run(tf1.local_variables_initializer())
  session.run(pair.local.assign(copy))
  session.run(op)
  return [value.tolist() for value in session.run([
      v.read_value() for v in pair.variables()])]


def test_center_is_sent_once_and_difference_once():
  with tf.Graph().as_default() as graph:
    with tf1.device(_PS):
      pair = _pair(device=_WORKER)
    with tf1.device(_WORKER):
      pair.local_center = tf1.get_variable('kept', [], use_resource=True)
    before = set(graph.get_operations())
    _move(pair, 0.5)
    new = [op for op in graph.get_operations() if op not in before]
  crossing = {
      (source.op.device, op.device, source.name) for op in new
      for source in op.inputs if source.dtype == tf.float32
      and source.op.device and op.device and source.op.device != op.device}
  assert sorted((a, b) for a, b, _ in crossing) == [
      (_PS, _WORKER), (_WORKER, _PS)]


@pytest.mark.parametrize('use_resource', [True, False])
def test_whole_variable_moves_by_the_rule(behavior, use_resource):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    pair = _pair([4.0, 0.0], use_resource=use_resource)
    # d = .25 * ([8, 2] - [4, 0])
    assert _run(session, pair, [8.0, 2.0], _move(pair, 0.25)) == [
        [7.0, 1.5], [5.0, 0.5]]


def test_view_of_the_centre_is_of_before_the_move(behavior):
  del behavior
  for use_resource in (True, False):
    with tf.Graph().as_default(), tf1.Session() as session:
      pair = _pair([4.0], use_resource=use_resource)
      pair.local_center = tf1.get_variable(
          'view', [1], use_resource=use_resource)
      assert _run(session, pair, [8.0], _move(pair, 0.25)) == [
          [7.0], [5.0], [4.0]]


def test_only_touched_rows_move_and_are_forgotten(behavior):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    pair = _pair([[0.0], [0.0], [0.0]])
    pair.touched = tf1.get_variable(
        'touched', initializer=[True, False, True], use_resource=True)
    assert _run(session, pair, [[4.0], [4.0], [8.0]],
                _move(pair, 0.5)) == [
        [[2.0], [4.0], [4.0]], [[2.0], [0.0], [4.0]], [False] * 3]


def test_copies_of_several_devices_move_at_once(behavior):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    a, b, center = [tf1.get_variable(name, initializer=value,
                                     use_resource=True)
                    for name, value in (('a', 1.0), ('b', 5.0), ('c', 3.0))]
    op = _move(elastic_pairs.Pair((a, b), center, True), 0.25)
    session.run(tf1.global_variables_initializer())
    session.run(op)
    # d = -.5 and .5, both of the centre before: it stays.
    assert session.run([a, b, center]) == [1.5, 4.5, 3.0]


@pytest.mark.parametrize('wire', [None, pair_moves.Wire('float16')],
                         ids=['whole', 'float16'])
@pytest.mark.parametrize('use_resource', [True, False])
def test_parts_of_a_variable_move_by_the_rule(behavior, use_resource, wire):
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    pair = _pair([[4.0, 0.0], [1.0, 2.0]], use_resource=use_resource)
    seen = pair_moves.seen_of(pair, wire, [1, 2, 1])
    differences = pair_moves.differences_of(pair, 0.25, wire, seen)
    assert [part.shape for part in differences.sent] == [[1], [2], [1]]
    # d = .25 * ([8, 2, 1, -2] - [4, 0, 1, 2])
    assert _run(session, pair, [[8.0, 2.0], [1.0, -2.0]],
                pair_moves.move(pair, differences)) == [
        [[7.0, 1.5], [1.0, -1.0]], [[5.0, 0.5], [1.0, 1.0]]]


@pytest.mark.parametrize('by_rows', [False, True], ids=['whole', 'rows'])
def test_int8_loses_nothing_of_copy_centre_and_feedback(behavior, by_rows):
  """Rounds the difference, and the feedback keeps what the centre lacks."""
  del behavior
  random = np.random.RandomState(0)
  center, copy = random.randn(2, 40, 16).astype(np.float32)
  touched = (np.arange(40) % 3 == 0) if by_rows else np.full(40, True)
  with tf.Graph().as_default(), tf1.Session() as session:
    pair = _pair(center)
    pair.feedback = tf1.get_variable(
        'feedback', initializer=np.zeros_like(center), use_resource=True)
    if by_rows:
      pair.touched = tf1.get_variable(
          'touched', initializer=touched, use_resource=True)
    differences, = pair_moves.receive_all(
        [pair], [0.25], pair_moves.Wire('int8'))
    _run(session, pair, copy, pair_moves.move(pair, differences))
    local, moved, kept = session.run([pair.local, pair.center, pair.feedback])
  np.testing.assert_allclose(
      local + moved + kept, copy + center, rtol=0, atol=1e-6)
  np.testing.assert_array_equal(local[~touched], copy[~touched])
  # A step of the code of int8 is 1/254 of a range below 10.
  difference = 0.25 * (copy - center) * touched[:, np.newaxis]
  np.testing.assert_allclose(local, copy - difference, atol=10 / 254)
  assert np.abs(kept[touched]).max() > 1e-4
