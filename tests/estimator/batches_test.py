# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of splitting a batch into shards."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import estimator
from tfplugin.estimator import batches
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

_Pair = collections.namedtuple('_Pair', ['left', 'right'])


def _split(features, labels=None, num_shards=2, **kwargs):
  """Returns the values of the shards of what a function makes in a graph."""
  with tf.Graph().as_default(), tf1.Session() as session:
    made = features()
    shards = batches.split_batch(
        made, labels() if labels else None, num_shards, **kwargs)
    return [session.run(shard) for shard in shards.features], shards


@pytest.mark.parametrize('rows, num_shards, sizes', (
    (4, 2, [2, 2]), (5, 2, [3, 2]), (7, 3, [3, 2, 2]), (1, 3, [1, 0, 0]),
    (113, 4, [29, 28, 28, 28]), (0, 2, [0, 0]), (3, 1, [3])))
@pytest.mark.parametrize('is_static', (True, False))
def test_splits_as_evenly_as_it_goes(behavior, rows, num_shards, sizes,
                                     is_static):
  x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)

  def features():
    return (tf.constant(x) if is_static
            else tf1.placeholder_with_default(x, [None, 2]))

  values, shards = _split(features, num_shards=num_shards)
  assert [len(value) for value in values] == sizes
  np.testing.assert_array_equal(np.concatenate(values), x)
  if is_static:
    assert shards.rows == sizes
    assert batch_parts.row_shares(shards.rows) == [
        size / rows if rows else float(i == 0) for i, size in enumerate(sizes)]


def test_splits_nested_structures(behavior):
  def features():
    pair = _Pair(tf.ones([3, 2]), tf.range(3))
    return {'deep': {'a': tf.range(3), 'pair': pair},
            'tuple': (tf.range(3) * 10,), 'rate': tf.constant(.5)}

  (first, second), _ = _split(features)
  assert first['deep']['a'].tolist() == [0, 1]
  assert second['deep']['a'].tolist() == [2]
  assert second['deep']['pair'].left.shape == (1, 2)
  assert second['tuple'][0].tolist() == [20]
  # A scalar goes to every tower.
  assert first['rate'] == second['rate'] == .5


def test_splits_sparse_and_ragged(behavior):
  def features():
    return {
        'sparse': tf.SparseTensor([[0, 1], [2, 0], [2, 2]], [1, 2, 3], [3, 3]),
        'ragged': tf.ragged.constant([[1, 2], [], [3]])}

  (first, second), _ = _split(features)
  assert first['sparse'].values.tolist() == [1]
  assert first['sparse'].dense_shape.tolist() == [2, 3]
  assert second['sparse'].indices.tolist() == [[0, 0], [0, 2]]
  assert second['sparse'].dense_shape.tolist() == [1, 3]
  assert first['ragged'].to_list() == [[1, 2], []]
  assert second['ragged'].to_list() == [[3]]


def test_broadcast_keys_are_not_split(behavior):
  def features():
    return {'x': tf.range(3), 'nested': {'anchors': tf.range(5)}}

  (first, second), _ = _split(features, broadcast=['anchors'])
  assert first['nested']['anchors'].tolist() == [0, 1, 2, 3, 4]
  assert second['nested']['anchors'].tolist() == [0, 1, 2, 3, 4]
  assert second['x'].tolist() == [2]


def test_labels_may_be_missing():
  with tf.Graph().as_default():
    assert batches.split_batch(tf.ones([2]), None, 2).labels == [
        None, None]


@pytest.mark.parametrize('features, broadcast, match', (
    (1.0, (), 'first dimension'),
    ({'x': [1, 2], 'y': [1, 2, 3]}, (), 'same first'),
    ({'x': [1, 2]}, ('anchors',), 'must name keys'),
    ({'x': [1, 2]}, ('x',), 'first dimension')))
def test_bad_batches_are_refused(features, broadcast, match):
  with tf.Graph().as_default():
    if isinstance(features, dict):
      features = {key: tf.constant(value) for key, value in features.items()}
    with pytest.raises(ValueError, match=match):
      batches.split_batch(features, None, 2, broadcast)


def test_broadcast_must_be_a_list_and_is_read_once():
  with pytest.raises(TypeError, match='`broadcast` must be a list'):
    batches.check_broadcast('x')
  assert batches.check_broadcast(iter(['x', 'y'])) == ('x', 'y')


def test_different_dynamic_sizes_are_refused_when_they_run(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(np.ones([3], np.float32), [None])
    y = tf1.placeholder_with_default(np.ones([2], np.float32), [None])
    shards = batches.split_batch({'x': x, 'y': y}, None, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match='same first'):
      session.run(shards.features)


def _check_even(rows):
  return batches.Shards(rows, rows, rows).check_even('owner')


def test_even_shards_pass():
  assert _check_even([2, 2, 2]) == []


@pytest.mark.parametrize('rows', ([2, 2, 1], [1, 0], [0, 0]))
def test_static_sizes_that_differ_or_are_zero_raise(rows):
  with pytest.raises(ValueError, match=(
      f'multiple of the {len(rows)} shards of `owner`.'
      f' Received: {sum(rows)} rows')):
    _check_even(rows)


def test_sizes_of_the_step_are_asserted_in_it():
  even, uneven = (tf.constant([2, last], tf.int64) for last in (2, 1))
  check = tf.function(
      lambda rows: [*_check_even(tf.unstack(rows)), 0][-1])
  check(even)
  with pytest.raises(tf.errors.InvalidArgumentError, match='multiple of the 2'):
    check(uneven)


@pytest.mark.parametrize('rows, num_shards', ((1, 1), (4, 2), (6, 3)))
def test_shards_of_the_same_size_pass(rows, num_shards):
  with tf.Graph().as_default():
    shards = batches.split_batch(tf.ones([rows]), None, num_shards)
    assert shards.check_even('owner') == []


@pytest.mark.parametrize('rows, num_shards', ((0, 1), (0, 2), (3, 2), (1, 2)))
def test_other_shards_are_refused(rows, num_shards):
  with tf.Graph().as_default():
    shards = batches.split_batch(tf.ones([rows]), None, num_shards)
    with pytest.raises(ValueError, match=(
        f'multiple of the {num_shards} shards of `owner`. '
        f'Received: {rows} rows')):
      shards.check_even('owner')


@pytest.mark.parametrize('rows, num_shards', (
    (0, 1), (3, 1), (4, 2), (3, 2), (6, 3), (5, 3), (4, 3)))
def test_sizes_that_are_not_static_are_compared_in_the_step(
    behavior, rows, num_shards):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(tf.ones([rows]), [None])
    shards = batches.split_batch(x, None, num_shards)
    checks = shards.check_even('owner')
    if rows % num_shards:
      with pytest.raises(tf.errors.InvalidArgumentError, match=(
          f'multiple of the {num_shards} shards of `owner`')):
        session.run(checks)
    else:
      session.run(checks)


@pytest.mark.parametrize('rows', ((2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3)))
def test_tensors_of_different_rows_are_found_in_the_step(behavior, rows):
  with tf.Graph().as_default(), tf1.Session() as session:
    leaves = [tf1.placeholder_with_default(tf.ones([n]), [None]) for n in rows]
    shards = batches.split_batch(leaves[:2], leaves[2], 2)
    first = (shards.features[0], shards.labels[0])
    if len(set(rows)) > 1:
      with pytest.raises(tf.errors.InvalidArgumentError, match=(
          'must have the same first dimension')):
        session.run(first)
    else:
      assert [x.tolist() for x in tf.nest.flatten(session.run(first))] == [
          [1.0]] * 3


def _of_unknown_size(kind, rows):
  """Returns a tensor of which only the step knows the first size."""
  if kind == 'sparse':
    return tf.sparse.from_dense(_of_unknown_size('dense', rows)[:, None])
  if kind == 'ragged':
    return tf.RaggedTensor.from_tensor(
        _of_unknown_size('dense', rows)[:, None])
  return tf1.placeholder_with_default(
      tf.ones([rows]), None if kind == 'unknown rank' else [None])


_KINDS = ('dense', 'sparse', 'ragged', 'unknown rank')


@pytest.mark.parametrize('rows', (4, 5, 3))
@pytest.mark.parametrize('kind', _KINDS)
def test_sizes_of_the_step_are_compared_with_a_static_one(behavior, kind, rows):
  with tf.Graph().as_default(), tf1.Session() as session:
    shards = batches.split_batch(
        {'x': tf.ones([4, 2]), 'negatives': _of_unknown_size(kind, rows)}, None,
        2)
    # The shards stay static: the assertion is before each slice.
    assert shards.rows == [2, 2] and not shards.check_even('owner')
    assert shards.features[1]['x'].shape == [2, 2]
    for shard in shards.features:
      for value in tf.nest.flatten(shard, expand_composites=True):
        if rows == 4:
          session.run(value)
          continue
        with pytest.raises(tf.errors.InvalidArgumentError, match=(
            r'(?s)same first dimension. Name in `broadcast` .*'
            rf'\[{rows}\].*\[4\]')):
          session.run(value)


@pytest.mark.parametrize('kind', _KINDS)
def test_one_shard_gets_everything_and_compares_nothing(behavior, kind):
  with tf.Graph().as_default(), tf1.Session() as session:
    (shard,) = batches.split_batch(
        {'x': tf.ones([4]), 'negatives': _of_unknown_size(kind, 5)}, None,
        1).features
    values = session.run(tf.nest.flatten(shard, expand_composites=True))
    assert max(map(len, values)) >= 5


@pytest.mark.parametrize('rows', (4, 5))
@pytest.mark.parametrize('kind', ('dense', 'sparse'))
@pytest.mark.parametrize('decorator', ('cross_shard', 'replicate_model_fn'))
def test_shards_and_towers_lose_no_row_silently(
    behavior, tmp_path, decorator, kind, rows):

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=1.0)
    rest = features['negatives']
    if kind == 'sparse':
      rest = tf.sparse.sparse_dense_matmul(rest, tf.ones([1, 1]))
    loss = (tf.reduce_sum(tf.tanh(w * rest)) +
            tf.reduce_mean(w * features['x']))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf1.train.GradientDescentOptimizer(
            0.1).minimize(loss, tf1.train.get_global_step()))

  def input_fn():
    return tf.data.Dataset.from_tensors({'x': tf.ones([4, 2])}).map(
        lambda x: {**x, 'negatives': _of_unknown_size(kind, rows)})

  decorate = getattr(estimator, decorator)
  trained = tf.estimator.Estimator(
      decorate(model_fn, devices=['/cpu:0'] * 2), str(tmp_path))
  if rows == 4:
    trained.train(input_fn)
  else:
    with pytest.raises(tf.errors.InvalidArgumentError, match='same first dim'):
      trained.train(input_fn)
