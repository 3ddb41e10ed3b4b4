# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the reduction of the shards' specs."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.estimator.cross_shard import check_specs
from tfplugin.estimator.cross_shard import concat_outputs
from tfplugin.estimator.cross_shard import reduce_specs

tf1 = tf.compat.v1

_Spec = tf.estimator.EstimatorSpec


def test_loss_is_the_weighted_sum(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    specs = [_Spec('eval', loss=tf.constant(loss)) for loss in (8., 2.)]
    spec = reduce_specs('eval', specs, [.25, .75])
    assert session.run(spec.loss) == .25 * 8 + .75 * 2
    assert spec.loss.name == 'loss:0'


def test_sparse_and_ragged_predictions_are_concatenated(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    sparse = [tf.SparseTensor([[0, 0]], [1], [1, 2]),
              tf.SparseTensor([[1, 2]], [2], [2, 3])]
    ragged = [tf.ragged.constant([[1, 2]]), tf.ragged.constant([[], [3]],
                                                               dtype=tf.int32)]
    joined = session.run(concat_outputs('p', [
        {'sparse': s, 'ragged': r} for s, r in zip(sparse, ragged)]))
  assert joined['sparse'].indices.tolist() == [[0, 0], [2, 2]]
  assert joined['sparse'].dense_shape.tolist() == [3, 3]
  assert joined['ragged'].to_list() == [[1, 2], [], [3]]


def test_scalar_prediction_is_that_of_the_first_shard(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    scalar = concat_outputs('p', [tf.constant(3.), tf.constant(5.)])
    assert session.run(scalar) == np.float32(3)


def _different_keys(shard):
  return _Spec('eval', loss=tf.constant(1.),
               predictions={f'p{shard}': tf.ones([1])})


def _no_loss(shard):
  return (_Spec('eval', loss=tf.constant(1.)) if not shard
          else _Spec('infer', predictions=tf.ones([1])))


@pytest.mark.parametrize('make, error, match', (
    (_different_keys, ValueError,
     r"`predictions` is \['p0'\] in shard 0 and \['p1'\] in shard 1"),
    (_no_loss, ValueError, 'in shard 1'),
    (lambda shard: _different_keys(0) if not shard else None, TypeError,
     'from shard 1: None')))
def test_shards_that_disagree_are_named(make, error, match):
  with tf.Graph().as_default():
    with pytest.raises(error, match=match):
      reduce_specs(
          'eval', [make(shard) for shard in range(2)], [.5, .5])


def _predictions(make, x, devices=2):
  """Returns the predictions for `x`, on one device and in towers."""
  def model_fn(features, mode):
    return tf.estimator.EstimatorSpec(mode, predictions={'y': make(features)})

  found = []
  for fn in (model_fn, tfplugin.replicate_model_fn(
      model_fn, devices=['/cpu:0'] * devices)):
    with tf.Graph().as_default(), tf1.Session() as session:
      features = tf1.placeholder(tf.int64, [None] * x.ndim)
      spec = fn(features, mode='infer')
      found.append(session.run(spec.predictions['y'], {features: x}).tolist())
  return found


@pytest.mark.parametrize('dtype', (tf.float32, tf.int64, tf.string, tf.bool))
def test_rows_of_different_lengths_are_filled_up(behavior, dtype):
  # Row i has i elements: towers are 4, 2 and 5 wide, or 0 wide without rows.
  def make(x):
    ragged = tf.cast(tf.ragged.range(x) + 1, tf.int32)
    dense = ragged.to_tensor()
    if dtype == tf.string:
      return tf.where(dense > 0, tf.strings.as_string(dense), '')
    return tf.cast(dense, dtype)

  for rows in ([4, 3, 1, 2, 5], [2, 3]):
    expected, found = _predictions(make, np.array(rows), 3)
    assert found == expected


@pytest.mark.parametrize('make', (
    lambda x: tf.constant(7),
    tf.reduce_sum,
    lambda x: tf.reduce_mean(tf.cast(x, tf.float64)),
    lambda x: tf.reduce_sum(tf.cast(x, tf.float64), 0),
    lambda x: tf.constant(['a', 'b']),
    lambda x: tf.shape(x)[0]))
def test_values_without_rows_are_those_of_one_device(behavior, make):
  expected, found = _predictions(make, np.array([[1], [2], [6]]))
  # A share of the rows is a float32.
  assert found == expected or found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('make', (
    lambda shard: tf.constant([1.0] if shard else [1]),
    lambda shard: tf.ones([1, 2 + shard]),
    lambda shard: {'a': tf.ones([1]), 'b': None if shard else tf.ones([1])},
    lambda shard: [tf.ones([1])] * (1 + shard)))
def test_values_that_differ_are_named(make):
  with tf.Graph().as_default():
    with pytest.raises(ValueError, match='`p` must be the same structure'):
      concat_outputs('p', [make(shard) for shard in range(2)])


@pytest.mark.parametrize('first, second, match', (
    ({'loss': 1.0}, {}, '`loss` is a tensor in shard 0 and None in shard 1'),
    ({'train_op': True}, {},
     '`train_op` is an op in shard 0 and None in shard 1'),
    ({}, {'train_op': True},
     '`train_op` is None in shard 0 and an op in shard 1')))
def test_what_a_tower_lacks_is_named(first, second, match):
  def make(loss=None, train_op=False):
    return _Spec('infer', predictions=tf.ones([1]),
                 loss=None if loss is None else tf.constant(loss),
                 train_op=tf.no_op() if train_op else None)

  with tf.Graph().as_default():
    with pytest.raises(ValueError, match=match):
      check_specs([make(**first), make(**second)])


@pytest.mark.parametrize('field', (
    'training_hooks', 'training_chief_hooks', 'evaluation_hooks'))
def test_towers_have_the_same_hooks(field):
  with tf.Graph().as_default():
    nan = tf1.train.NanTensorHook(tf.constant(1.0))
    stop = tf1.train.StopAtStepHook(1)

    def make(*hooks):
      return _Spec('train', loss=tf.constant(1.0), train_op=tf.no_op(),
                   **{field: hooks})

    check_specs([make(), make()])
    check_specs([make(nan), make(nan)])
    with pytest.raises(ValueError, match=(
        rf"`{field}` is \['NanTensorHook'\] in shard 0 and "
        r"\['StopAtStepHook'\] in shard 1")):
      check_specs([make(nan), make(stop)])
