# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of batches of every structure, from features to predictions."""

import collections
import types

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.estimator import replicate

tf1 = tf.compat.v1

_TRAIN, _EVAL, _PREDICT = 'train', 'eval', 'infer'
_Pair = collections.namedtuple('_Pair', ('left', 'right'))
_X = np.random.RandomState(0).randn(8, 2).astype(np.float32)
# The scale is a scalar; the table has as many rows as no batch has.
_SCALE = np.float32(.5)
_TABLE = np.array([[1.], [2.], [3.]], np.float32)


def _batch(rows, known):
  """Returns features of `rows` rows, their number known or not, and a feed."""
  x = _X[:rows]
  feed = {}

  def dense(value):
    if known:
      return tf.constant(value)
    placeholder = tf1.placeholder(value.dtype, [None, *value.shape[1:]])
    feed[placeholder] = value
    return placeholder

  indices = [(row, row % 3) for row in range(rows) if row != 1]
  sparse = tf.SparseTensor(
      dense(np.array(indices, np.int64)),
      dense(np.arange(1, len(indices) + 1, dtype=np.float32)), [rows, 3])
  ragged = tf.RaggedTensor.from_row_lengths(
      dense(np.arange(rows * (rows - 1) // 2, dtype=np.float32)),
      dense(np.arange(rows, dtype=np.int64)))
  return {
      'pair': _Pair(dense(x), (dense(x[:, 0]),)),
      'nested': {'sparse': sparse, 'inner': {'ragged': ragged}},
      'scale': tf.constant(_SCALE), 'table': tf.constant(_TABLE)}, feed


def _model_fn(features, mode, labels=None):
  """Uses everything in `features`; labels may be missing."""
  assert labels is None
  (x, (column,)), nested = features['pair'], features['nested']
  w = tf1.get_variable('w', initializer=[[.3], [-.2]])
  words = tf1.sparse_tensor_dense_matmul(nested['sparse'], features['table'])
  lengths = tf.reduce_sum(nested['inner']['ragged'], axis=1)
  row = tf.square(
      (x @ w)[:, 0] + column + words[:, 0] * features['scale'] - lengths)
  loss = tf.reduce_mean(row)
  train_op = tf1.train.GradientDescentOptimizer(.01).minimize(loss)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      predictions={
          'row': row, 'scale': features['scale'], 'lengths': lengths,
          'words': tf.sparse.to_dense(nested['sparse'])})


def _replicated(num_towers, **kwargs):
  return replicate.replicate_model_fn(
      _model_fn, devices=[f'/cpu:{i}' for i in range(num_towers)],
      broadcast=['table'], **kwargs)


def _run(model_fn, mode, rows, known):
  with tf.Graph().as_default(), tf1.Session() as session:
    features, feed = _batch(rows, known)
    spec = model_fn(features=features, mode=mode)
    session.run(tf1.global_variables_initializer())
    results = session.run({
        'loss': () if spec.loss is None else spec.loss,
        'step': spec.train_op or (), **spec.predictions}, feed)
    del results['step']
    results['w'] = session.run(tf1.trainable_variables()[0])
    return results


def _assert_same(found, expected):
  assert sorted(found) == sorted(expected)
  for key, value in expected.items():
    np.testing.assert_allclose(found[key], value, rtol=1e-5, err_msg=key)


@pytest.mark.sampled(3)
@pytest.mark.parametrize('mode', (_TRAIN, _EVAL, _PREDICT))
@pytest.mark.parametrize('known', (True, False))
@pytest.mark.parametrize('rows', (8, 5, 2))
def test_every_structure_equals_one_device(behavior, rows, known, mode):
  _assert_same(_run(_replicated(3), mode, rows, known),
               _run(_model_fn, mode, rows, known))


def test_without_replicate_eval_the_numbers_are_the_same(behavior):
  _assert_same(_run(_replicated(3, replicate_eval=False), _EVAL, 5, True),
               _run(_model_fn, _EVAL, 5, True))


def test_what_is_not_in_broadcast_must_have_the_rows_of_the_batch(behavior):
  model_fn = replicate.replicate_model_fn(
      _model_fn, devices=['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match=r'Received: \[3, 5\].*`broadcast`'):
      model_fn(features=_batch(5, True)[0], mode=_PREDICT)


def _sum_of_squares(features, labels, mode):
  w = tf1.get_variable('w', initializer=[[.3], [-.2]])
  outputs = tf.reshape(features['x'], [-1, 2]) @ w
  loss = tf.reduce_sum(tf.square(outputs - labels['y']))
  train_op = tf1.train.GradientDescentOptimizer(.01).minimize(loss)
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.parametrize('known', (True, False))
@pytest.mark.parametrize('make', (
    collections.OrderedDict, collections.UserDict, types.MappingProxyType,
    lambda values: collections.defaultdict(list, values)))
def test_any_mapping_and_tensors_of_unknown_rank(behavior, make, known):
  with tf.Graph().as_default(), tf1.Session() as session:
    x = tf1.placeholder_with_default(_X[:7], [None, 2] if known else None)
    y = tf1.placeholder_with_default(_X[:7, :1], [None, 1])
    spec = replicate.replicate_model_fn(
        _sum_of_squares, devices=['/cpu:0', '/cpu:0'])(
            features=make({'x': x}), labels=make({'y': y}), mode=_TRAIN)
    session.run(tf1.global_variables_initializer())
    expected = np.square(_X[:7] @ [[.3], [-.2]] - _X[:7, :1]).sum()
    np.testing.assert_allclose(session.run(spec.loss), expected, rtol=1e-5)
