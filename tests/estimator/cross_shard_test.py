# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decorator that trains on shards."""

from __future__ import annotations

import functools
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin.estimator import cross_shard

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN
MEAN = tf1.losses.Reduction.MEAN
SUM = tf1.losses.Reduction.SUM
DEVICES = ['/cpu:0', '/cpu:1']


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.0625)


@pytest.mark.parametrize('reduction', (MEAN, SUM))
@pytest.mark.parametrize('style', decorated_models.STYLES)
def test_equals_the_wrapper_bit_for_bit(style, reduction):
  def explicit(optimizer):
    return tfplugin.CrossShardOptimizer(optimizer, reduction)

  decorate = cross_shard(devices=DEVICES, reduction=reduction)
  plain = decorated_models.regression(style, _sgd)
  wrapped = decorated_models.regression(style, _sgd, explicit)
  values = decorated_models.train(decorate(plain))
  # One that is there already stays as it is: the same again.
  decorated_models.assert_equal(values, decorated_models.train(
      decorate(wrapped)))
  assert sorted(values) == ['bias', 'global_step', 'losses', 'weight']


def test_devices_that_can_be_read_once_serve_every_graph():
  model_fn = decorated_models.regression(make_optimizer=_sgd)
  decorated = cross_shard(model_fn, devices=iter(DEVICES), broadcast=iter(()))
  for _ in range(2):
    decorated_models.assert_equal(
        decorated_models.train(decorated),
        decorated_models.train(cross_shard(model_fn, devices=DEVICES)))


def _one_step(x, y):
  """Loss and gradients of the regression at its start, in float64."""
  weight, bias = np.array([[0.5], [-0.25]]), 0.125
  error = x @ weight + bias - y
  return (np.mean(error**2), 2 * x.T @ error / len(x),
          2 * np.mean(error, axis=0))


@pytest.mark.parametrize('num_shards', (2, 4))
@pytest.mark.parametrize('reduction', (MEAN, SUM))
def test_against_numpy(behavior, reduction, num_shards):
  x, y = decorated_models.first_batch()
  shards = [_one_step(*shard) for shard in zip(
      np.split(x, num_shards), np.split(y, num_shards))]
  scale = 1 / num_shards if reduction == MEAN else 1
  loss, weight, bias = (scale * sum(parts) for parts in zip(*shards))
  values = decorated_models.train(cross_shard(
      decorated_models.regression(make_optimizer=_sgd),
      devices=DEVICES * (num_shards // 2), reduction=reduction), 1)
  np.testing.assert_allclose(values['losses'], [loss], rtol=1e-5)
  np.testing.assert_allclose(
      values['weight'], [[0.5], [-0.25]] - 0.0625 * weight, rtol=1e-5)
  np.testing.assert_allclose(values['bias'], 0.125 - 0.0625 * bias, rtol=1e-5)


def test_clipping_by_hand_is_the_shards_own(behavior):
  """tf.gradients are summed: two shards' gradients of norm 2."""
  x, y = decorated_models.first_batch()
  total = np.zeros([3, 1])
  for shard in zip(np.split(x, 2), np.split(y, 2)):
    _, weight, bias = _one_step(*shard)
    gradient = np.concatenate([weight, bias[np.newaxis]])
    assert np.linalg.norm(gradient) > 2
    total += 2 * gradient / np.linalg.norm(gradient)
  values = decorated_models.train(cross_shard(
      decorated_models.regression('tf_gradients', _sgd), devices=DEVICES), 1)
  np.testing.assert_allclose(
      np.concatenate([values['weight'], values['bias'][np.newaxis]]),
      [[0.5], [-0.25], [0.125]] - 0.0625 * total, rtol=1e-5)


GROUPS = ([[0, 1], [2, 3]], [[3, 0], [1, 2]], [[2], [0], [1], [3]])


@pytest.mark.sampled(4)
@pytest.mark.parametrize('reduction', (MEAN, SUM))
@pytest.mark.parametrize('style', decorated_models.STYLES)
@pytest.mark.parametrize('groups', GROUPS, ids=str)
def test_variables_follow_the_group_of_the_first_shard(
    style, groups, reduction):
  """Against numpy, and bit for bit the wrapper below a decorator of its own."""
  x, y = decorated_models.first_batch()
  group = next(group for group in groups if 0 in group)
  scale = 1 / len(group) if reduction == MEAN else 1
  losses, total = [], np.zeros([3, 1])
  for shard, (x_part, y_part) in enumerate(zip(np.split(x, 4), np.split(y, 4))):
    loss, weight, bias = _one_step(x_part, y_part)
    losses.append(loss)
    gradient = np.concatenate([weight, bias[np.newaxis]])
    if style != 'tf_gradients':
      gradient *= scale
    if style in ('tf_gradients', 'clip_by_hand'):
      gradient *= min(1.0, 2.0 / np.linalg.norm(gradient))
    total += gradient * (shard in group)
  arguments = dict(reduction=reduction, group_assignment=groups)
  decorated = cross_shard(decorated_models.regression(style, _sgd),
                          devices=DEVICES * 2, **arguments)
  values = decorated_models.train(decorated, 1)
  np.testing.assert_allclose(
      np.concatenate([values['weight'], values['bias'][np.newaxis]]),
      [[0.5], [-0.25], [0.125]] - 0.0625 * total, rtol=1e-5)
  np.testing.assert_allclose(
      values['losses'], [np.mean(losses) * scale * len(group)], rtol=1e-5)
  explicit = decorated_models.regression(
      style, _sgd,
      lambda optimizer: tfplugin.CrossShardOptimizer(optimizer, **arguments))
  decorated_models.assert_equal(values, decorated_models.train(
      cross_shard(explicit, devices=DEVICES * 2, **arguments), 1))
  # Its groups are its own: the decorator need not know them.
  other = decorated_models.train(
      cross_shard(explicit, devices=DEVICES * 2, reduction=reduction), 1)
  np.testing.assert_allclose(values['weight'], other['weight'], rtol=1e-5)


@pytest.mark.parametrize('groups, expected', (
    # Rows 8, 5, 1, 2 with weights 1, 0, 2, 1: the sums over non-zero counts.
    (None, (8 + 2 + 2) / 3), ([[0, 1], [2, 3]], 8 / 1),
    ([[0, 2], [1, 3]], (8 + 2) / 2)))
def test_weighted_losses_are_the_means_of_a_group(groups, expected):
  """The gradient of the loss with respect to w, which is 1."""

  @cross_shard(devices=DEVICES * 2, group_assignment=groups)
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=1.0)
    loss = tf1.losses.compute_weighted_loss(w * features, labels)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        _sgd().minimize(loss, tf1.train.get_global_step())))

  def dataset():
    return tf.data.Dataset.from_tensors(
        (np.float32([8, 5, 1, 2]), np.float32([1, 0, 2, 1])))

  values = decorated_models.train(model_fn, 1, dataset)
  np.testing.assert_allclose(values['w'], 1 - 0.0625 * expected, rtol=1e-6)


def test_sums_over_the_shards_inside_the_model_fn():
  @cross_shard(devices=DEVICES)
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    total = tfplugin.cross_replica_sum(tf.reduce_sum(features))
    loss = tf.stop_gradient(total) * w
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        _sgd().minimize(loss, tf1.train.get_global_step())))

  x, _ = decorated_models.first_batch()
  values = decorated_models.train(model_fn, 1)
  np.testing.assert_allclose(values['w'], -0.0625 * x.sum(), rtol=1e-5)


def test_batch_of_unknown_size():
  def batched(rows, drop_remainder=False):
    return decorated_models.batches().unbatch().batch(rows, drop_remainder)

  decorated = cross_shard(decorated_models.regression(), devices=DEVICES)
  fixed = decorated_models.train(decorated, dataset=lambda: batched(4, True))
  decorated_models.assert_equal(
      decorated_models.train(decorated, dataset=lambda: batched(4)), fixed)
  with pytest.raises(tf.errors.InvalidArgumentError, match='multiple of the 2'):
    decorated_models.train(decorated, dataset=lambda: batched(5))
  for rows in (1, 5):
    with pytest.raises(ValueError, match=f'multiple.*Received: {rows} rows'):
      decorated_models.train(decorated, dataset=lambda r=rows: batched(r, True))


def test_evaluates_the_whole_batch():
  model_fn = decorated_models.regression()
  decorated = cross_shard(model_fn, devices=DEVICES)
  with tf.Graph().as_default():
    spec = decorated_models.call(decorated, tf.estimator.ModeKeys.PREDICT,
                                 tf.ones([5, 2]))
  assert spec.predictions['y'].shape == [5, 1]


def test_forms_of_use():
  model_fn = decorated_models.regression()

  class Model:

    @cross_shard(devices=DEVICES)
    def method(self, features, labels, mode):
      return model_fn(features, labels, mode)

  # Without arguments: all of the logical CPUs.
  expected = decorated_models.train(cross_shard(model_fn, devices=DEVICES))
  for form in (Model().method, cross_shard(devices=DEVICES)(model_fn),
               cross_shard(functools.partial(model_fn), devices=DEVICES,
                           group_assignment=[[1, 0]])):
    decorated_models.assert_equal(decorated_models.train(form), expected)
  np.testing.assert_allclose(
      decorated_models.train(cross_shard(model_fn))['weight'],
      expected['weight'], rtol=1e-5)


@pytest.mark.parametrize('arguments, error, match', (
    (dict(reduction='sum'), ValueError, '`reduction`'),
    (dict(devices='/cpu:0'), TypeError, '`devices`'),
    (dict(devices=[]), ValueError, '`devices`'),
    (dict(group_assignment=[0, 1]), ValueError, 'list of lists'),
    (dict(group_assignment=[[0, 1], [2]]), ValueError, 'one size'),
    (dict(group_assignment=[[0], [0]]), ValueError, 'permutation'),
    (dict(group_assignment=[[0, 1, 2]], devices=DEVICES), ValueError,
     'permutation')))
def test_bad_arguments_are_refused_where_they_are_given(
    arguments, error, match):
  with pytest.raises(error, match=match):
    cross_shard(**arguments)


def test_strategy_around_it_is_refused():
  decorated = cross_shard(decorated_models.regression(), devices=DEVICES)
  strategy = tf1.distribute.OneDeviceStrategy('/cpu:0')
  with tf.Graph().as_default(), strategy.scope():
    tf1.train.create_global_step()
    with pytest.raises(RuntimeError, match='OneDeviceStrategy'):
      strategy.run(lambda: decorated_models.call(
          decorated, TRAIN, tf.ones([4, 2]), tf.ones([4, 1])).loss)


def test_one_shard_is_one_device(behavior):
  model_fn = decorated_models.regression(make_optimizer=_sgd)
  decorated_models.assert_equal(
      decorated_models.train(cross_shard(devices=['/cpu:0'])(model_fn)),
      decorated_models.train(model_fn))


@pytest.mark.parametrize('devices', (DEVICES, DEVICES[:1]))
def test_shards_in_processes_of_horovod_are_refused(monkeypatch, devices):
  summed = []

  def allreduce(x, op):
    summed.append(op)
    return x

  def model_fn(features, labels, mode):
    # A model_fn may be the first that imports it.
    monkeypatch.setitem(sys.modules, 'horovod.tensorflow', (
        types.SimpleNamespace(
            is_initialized=lambda: True, size=lambda: 2, rank=lambda: 0,
            allreduce=allreduce, Sum='sum')))
    return decorated_models.regression(make_optimizer=_sgd)(
        features, labels, mode)

  decorated = cross_shard(model_fn, devices=devices)
  if len(devices) == 1:
    decorated_models.train(decorated)
    assert set(summed) == {'sum'}
    return
  with pytest.raises(RuntimeError, match='2 shards, and 2 processes of Horo'):
    decorated_models.train(decorated)


@pytest.mark.parametrize('change', (
    lambda g: g, lambda g: 2.0 * g, lambda g: tf.clip_by_norm(g, 0.5)))
def test_gradients_that_are_summed_by_hand_are_summed_once(behavior, change):
  """As one device, for a loss that is a mean."""
  def model_fn(features, labels, mode, total=tfplugin.cross_replica_sum):
    w = tf1.get_variable('w', initializer=[[0.5], [-0.25]])
    v = tf1.get_variable('v', initializer=1.0)
    loss = tf.reduce_mean(tf.square(features @ w - labels)) + v * v
    optimizer = _sgd()
    (of_w, _), (of_v, _) = optimizer.compute_gradients(loss, [w, v])
    # The shards sum that of `v`.
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        optimizer.apply_gradients([(change(total(of_w)), w), (of_v, v)],
                                  tf1.train.get_global_step())))

  found = decorated_models.train(cross_shard(model_fn, devices=DEVICES), 2)
  expected = decorated_models.train(
      functools.partial(model_fn, total=lambda g: g), 2)
  for name in 'wv':
    np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)


def test_rows_of_gradients_that_are_summed_by_hand(behavior):
  def model_fn(features, labels, mode, total=tfplugin.cross_replica_sum):
    del labels
    table = tf1.get_variable('table', initializer=[[0.0]] * 4)
    ids = tf.cast(tf.abs(features[:, 0]), tf.int64) % 4
    loss = tf.reduce_mean(tf.nn.embedding_lookup(table, ids))
    optimizer = _sgd()
    (rows, _), = optimizer.compute_gradients(loss, [table])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        optimizer.apply_gradients([(total(rows), table)],
                                  tf1.train.get_global_step())))

  found, expected = (decorated_models.train(each, 1)['table'] for each in (
      cross_shard(model_fn, devices=DEVICES),
      functools.partial(model_fn, total=lambda g: g)))
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_tensors_that_a_hook_reads_by_name_are_of_all_rows(behavior):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=[[0.5], [-0.25]])
    rows = tf.square(features @ w - labels)
    loss = tf.identity(tf.reduce_mean(rows), name='loss')
    tf.identity(tf.reduce_mean(rows), name='mean_of_rows')
    tf.identity(tf.reduce_max(rows), name='worst')
    tf1.summary.scalar('shown', tf.reduce_max(rows))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=_sgd().minimize(loss))

  x, y = decorated_models.first_batch()
  found = []
  for decorated in model_fn, cross_shard(model_fn, devices=DEVICES):
    with tf.Graph().as_default(), tf1.Session() as session:
      decorated_models.call(
          decorated, TRAIN, tf.constant(x, tf.float32),
          tf.constant(y, tf.float32))
      session.run(tf1.global_variables_initializer())
      *numbers, shown = session.run(
          ['loss:0', 'mean_of_rows:0', 'worst:0', 'shown:0'])
      found.append([*numbers, tf1.Summary.FromString(
          shown).value[0].simple_value])
  np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
