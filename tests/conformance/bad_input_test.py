# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers refuse bad input at the user's call, with nothing half done."""

import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

_SUM = tf1.losses.Reduction.SUM


def _sgd():
  return tf1.train.GradientDescentOptimizer(0.5)


def _cross_shard(opt=None, **kwargs):
  return tfplugin.CrossShardOptimizer(opt or _sgd(), **kwargs)


def _drop_stale(opt=None, staleness=1):
  return tfplugin.DropStaleGradientOptimizer(opt or _sgd(), staleness)


def _elastic(opt=None, num_worker=2, **kwargs):
  return tfplugin.ElasticAverageOptimizer(
      opt or _sgd(), num_worker, tfplugin.ElasticAverageCustomGetter(''),
      **kwargs)


def _tower(opt=None):
  return tfplugin.TowerOptimizer(opt or _sgd())


def _clipping(opt=None, dims=(0,), max_norm=1.0, **kwargs):
  rules = kwargs.pop('rules', None) or [(tf1.trainable_variables()[0], dims)]
  return tfplugin.VariableClippingOptimizer(opt or _sgd(), rules, max_norm)


_MAKERS = {'CrossShardOptimizer': _cross_shard,
           'DropStaleGradientOptimizer': _drop_stale,
           'ElasticAverageOptimizer': _elastic, 'TowerOptimizer': _tower,
           'VariableClippingOptimizer': _clipping}


def test_every_optimizer_is_here():
  assert set(_MAKERS) == {
      name for name in tfplugin.__all__ if name.endswith('Optimizer')}


def _assert_refused(error, message, call):
  """`call` raises and leaves the graph as it was."""
  with tf.Graph().as_default() as graph:
    tf1.get_variable('table', [4, 2])
    before = [op.name for op in graph.get_operations()]
    with pytest.raises(error, match=message) as raised:
      call()
    assert 'Received' in str(raised.value)
    assert [op.name for op in graph.get_operations()] == before


@pytest.mark.parametrize('make_opt, remedy', [
    (lambda: tf.keras.optimizers.Adam(), 'Keras optimizers are not supported'),
    (lambda: tf.keras.optimizers.legacy.Adam(),
     'Keras optimizers are not supported'),
    (lambda: tf1.train.AdamOptimizer, r'Pass an instance, not the class'),
    (lambda: 'sgd', 'Pass e.g.')],
                         ids=('keras', 'keras_legacy', 'class', 'name'))
@pytest.mark.parametrize('name', _MAKERS)
def test_wrong_optimizer_type(behavior, name, make_opt, remedy):
  argument = '`opt(imizer_or_optimizer_fn)?` must be'
  opt = make_opt()
  _assert_refused(TypeError, f'{argument}.*{remedy}',
                  lambda: _MAKERS[name](opt))


@pytest.mark.parametrize('make, settings, error, message', [
    (_elastic, {'communication_period': -1}, ValueError, '`communication_per'),
    (_elastic, {'communication_period': 0}, ValueError, '`communication_per'),
    (_elastic, {'communication_period': 2.5}, TypeError, '`communication_per'),
    (_elastic, {'num_worker': 0}, ValueError, '`num_worker`'),
    (_elastic, {'num_worker': '2'}, TypeError, '`num_worker`.*without quotes'),
    (_elastic, {'moving_rate': 1.01}, ValueError, r'`moving_rate`.*\[0, 1\]'),
    (_elastic, {'moving_rate': -0.01}, ValueError, r'`moving_rate`.*\[0, 1\]'),
    (_drop_stale, {'staleness': 1.5}, TypeError, '`staleness`.*integer'),
    (_drop_stale, {'staleness': '3'}, TypeError, '`staleness`.*integer'),
    (_drop_stale, {'staleness': -1}, ValueError, '`staleness`'),
    (_clipping, {'max_norm': 0}, ValueError, '`max_norm`.*greater than 0'),
    (_clipping, {'max_norm': -2.0}, ValueError, '`max_norm`.*greater than 0'),
    (_clipping, {'dims': [2]}, ValueError, r"'table'.*\[-2, 2\).*\[2\]"),
    (_clipping, {'dims': [-3]}, ValueError, r"'table'.*\[-2, 2\)"),
    (_clipping, {'dims': [1, 1]}, ValueError, "'table' must not repeat"),
    (_clipping, {'dims': [1, -1]}, ValueError, "'table' must not repeat"),
    (_cross_shard, {'reduction': 'mean'}, ValueError, "`reduction`.*'mean'"),
    (_cross_shard, {'reduction': tf1.losses.Reduction.NONE}, ValueError,
     '`reduction`'),
    (_cross_shard, {'group_assignment': [0, 1]}, ValueError, 'list of lists'),
    (_cross_shard, {'group_assignment': 'ab'}, ValueError, 'list of lists'),
    (_cross_shard, {'group_assignment': [[0], [1, 2]]}, ValueError, 'one size'),
    (_cross_shard, {'group_assignment': [[0, 0]]}, ValueError, 'permutation'),
    (_cross_shard, {'group_assignment': [[0, 2]]}, ValueError, 'permutation'),
])
def test_bad_setting(make, settings, error, message):
  _assert_refused(error, message, lambda: make(**settings))


def test_unknown_variable_before_anything_is_updated(behavior):
  with tf.Graph().as_default():
    w = tf1.get_variable('embedding/table', [4, 2])
    optimizer = _clipping(tf1.train.AdamOptimizer(), rules={'tabel': 1})
    with pytest.raises(ValueError, match=r"'tabel'.*Near names.*table"):
      optimizer.minimize(tf.reduce_sum(w))
    assert tf1.global_variables() == [w] and not optimizer.variables()


@pytest.mark.parametrize('num_devices, groups', [(2, [[0, 1, 2]]), (2, [[0]])])
def test_groups_that_the_shards_do_not_fill(num_devices, groups):
  strategy = tf.distribute.MirroredStrategy(
      [f'CPU:{i}' for i in range(num_devices)],
      tf.distribute.ReductionToOneDevice())
  with strategy.scope():
    w = tf.Variable(1.0)
  optimizer = _cross_shard(reduction=_SUM, group_assignment=groups)

  @tf.function
  def step():
    strategy.run(lambda: optimizer.minimize(lambda: w * w, var_list=[w]))

  with pytest.raises(ValueError, match=r'`group_assignment`.*range\(2\)'):
    step()
  assert w.numpy() == 1.0
