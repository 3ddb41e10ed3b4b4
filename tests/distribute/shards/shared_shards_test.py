# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of shards in one graph that share their variables.

Most of it is tested by shard_run_test.
"""

import contextlib
import functools

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import shard_loss
from tfplugin.distribute.shards import shared_shards
from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1


def _calls(fn, count):
  return [functools.partial(fn, shard) for shard in range(count)]


def test_each_shard_knows_its_index_and_shares_the_variables(behavior):
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])

  def fn(shard):
    return (shard, tower_strategy.current_tower(),
            strategy.num_replicas_in_sync, tf1.get_variable('w', []))

  with tf.Graph().as_default():
    shards = strategy.build(_calls(fn, 2)).results
    assert strategy.num_replicas_in_sync == 2
  assert [shard[:3] for shard in shards] == [(0, 0, 1), (1, 1, 1)]
  assert shards[0][3] is shards[1][3]
  assert len(shards[0][3].values) == 1


@pytest.mark.parametrize('shares, mean', (([.75, .25], 1.0), (None, 2.0)))
def test_a_mean_over_shards_has_their_weights(behavior, shares, mean):
  def fn(shard):
    return tf.distribute.get_replica_context().all_reduce(
        'MEAN', tf.constant(4.0 * shard))

  strategy = shared_shards.SharedShards(
      ['/cpu:0', '/cpu:1'], shares_of_rows=shares)
  with tf.Graph().as_default(), tf1.Session() as session:
    means = strategy.build(_calls(fn, 2)).results
    assert session.run(means) == [mean, mean]


def test_a_shard_minimises_its_part_of_the_loss(behavior):
  def fn(_):
    w = tf1.get_variable('w', [])
    compute = tf1.train.GradientDescentOptimizer(1.0).compute_gradients
    found = compute(8.0 * w)
    with shard_loss.losses_as_they_are():
      with shard_loss.losses_as_they_are():
        pass
      return found + compute(8.0 * w)

  strategy = shared_shards.SharedShards(
      ['/cpu:0', '/cpu:1'], reduction='weighted_mean')
  with tf.Graph().as_default(), tf1.Session() as session:
    found, _ = strategy.build(_calls(fn, 2)).results
    session.run(tf1.global_variables_initializer())
    assert session.run([gradient for gradient, _ in found]) == [4.0, 8.0]


def test_shared_variable_is_in_the_collections(behavior):
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    w = tf1.get_variable('w', [2])
    plain = tf1.get_variable('plain', [], trainable=False)
    assert len(w.values) == 1
    assert tf1.trainable_variables() == [w]
    assert [v.name for v in tf1.global_variables()] == ['w:0', 'plain:0']
    assert plain.aggregation == tf1.VariableAggregation.ONLY_FIRST_REPLICA


def test_a_variable_beside_an_op_is_refused():
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    other = tf.constant(1.0).op
    with pytest.raises(RuntimeError, match='SyncReplicasOptimizer'):
      with strategy.extended.colocate_vars_with(other):
        pass


def test_an_update_by_keras_3_is_refused(monkeypatch):
  # There is one Keras; this stands for an optimizer of the other one.
  monkeypatch.setattr(_tf_internals, 'keras_3_module_of',
                      lambda fn: 'keras.src.optimizers.sgd')
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), strategy.scope():
    w = tf1.get_variable('w', [2])
    with pytest.raises(TypeError, match='must not be one of Keras 3'):
      strategy.extended.update(w, lambda v: v.assign_add([1.0, 1.0]))


def test_saver_stores_it_under_its_name(behavior, tmp_path):
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      tf1.get_variable('w', initializer=[1.0, 2.0])
    saver = tf1.train.Saver()
    session.run(tf1.global_variables_initializer())
    path = saver.save(session, str(tmp_path / 'model'))
  assert tf.train.list_variables(path) == [('w', [2])]
  assert tf.train.load_variable(path, 'w').tolist() == [1.0, 2.0]


def test_warm_start_initializes_what_is_shared(behavior, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('whole', initializer=[5.0])
    tf1.get_variable('parts', initializer=[1.0, 2.0, 3.0])
    session.run(tf1.global_variables_initializer())
    source = tf1.train.Saver().save(session, str(tmp_path / 'model'))
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      whole = tf1.get_variable('whole', initializer=[0.0])
      parts = list(tf1.get_variable(
          'parts', [3], initializer=tf1.zeros_initializer(),
          partitioner=tf1.fixed_size_partitioner(2)))
    tf1.train.warm_start(source)
    session.run(tf1.global_variables_initializer())
    assert [v.tolist() for v in session.run([whole, *parts])] == [
        [5.0], [1.0, 2.0], [3.0]]


@pytest.mark.parametrize('inside', (True, False))
def test_warm_start_with_another_vocabulary(behavior, inside, tmp_path):
  (tmp_path / 'old').write_text('a\nb\nc\n')
  (tmp_path / 'new').write_text('c\nd\na\n')
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('rows', initializer=[[1.0], [2.0], [3.0]])
    session.run(tf1.global_variables_initializer())
    source = tf1.train.Saver().save(session, str(tmp_path / 'model'))
  strategy = shared_shards.SharedShards(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      rows = tf1.get_variable(
          'rows', [3, 1], initializer=tf1.ones_initializer())
    # Estimator calls it in the scope, a decorated model_fn has left it.
    with strategy.scope() if inside else contextlib.nullcontext():
      tf1.train.warm_start(source, var_name_to_vocab_info={
          'rows': tf1.train.VocabInfo(
              str(tmp_path / 'new'), 3, 0, str(tmp_path / 'old'))})
    session.run(tf1.global_variables_initializer())
    assert session.run(rows).tolist() == [[3.0], [0.0], [1.0]]


def _after_scatter(scatter, aggregation, values=(1.0, 3.0)):
  """Returns a variable of [4, 4] after each shard scattered its value."""
  strategy = shared_shards.SharedShards(
      ['/cpu:0'] * 2, [.75, .25], [.75, .25])

  def fn(shard):
    v = tf1.get_variable('v', initializer=[4.0, 4.0], trainable=False,
                         use_resource=True, aggregation=aggregation)
    return scatter(v, tf.constant([values[shard]]), tf.constant([1]))

  with tf.Graph().as_default(), tf1.Session() as session:
    first, _ = strategy.build(_calls(fn, 2)).results
    session.run(tf1.global_variables_initializer())
    session.run(first)
    return session.run(tf1.global_variables()[0]).tolist()


@pytest.mark.parametrize('aggregation, added', [
    ('MEAN', .75 * 1 + .25 * 3), ('SUM', 4.0), ('ONLY_FIRST_REPLICA', 1.0),
    ('NONE', 2.0)])
def test_scatter_takes_the_aggregation(behavior, aggregation, added):
  aggregation = tf1.VariableAggregation[aggregation]
  for method, sign in (('scatter_add', 1), ('scatter_sub', -1)):
    assert _after_scatter(
        lambda v, x, i, method=method: getattr(v, method)(
            tf.IndexedSlices(x, i)), aggregation) == [4.0, 4.0 + sign * added]


@pytest.mark.parametrize('method, expected', [
    ('scatter_update', 1.0), ('scatter_max', 4.0), ('scatter_min', 1.0),
    ('scatter_mul', 4.0), ('scatter_div', 4.0)])
def test_other_scatters_take_the_first_shard(behavior, method, expected):
  def scatter(v, x, i):
    return getattr(v, method)(tf.IndexedSlices(x, i))

  assert _after_scatter(
      scatter, tf1.VariableAggregation.ONLY_FIRST_REPLICA) == [4.0, expected]
  with pytest.raises(ValueError, match=f'`{method}` of a variable in shards'):
    _after_scatter(scatter, tf1.VariableAggregation.MEAN)


@pytest.mark.parametrize('method, expected', [
    ('scatter_nd_add', 5.0), ('scatter_nd_sub', 3.0), ('scatter_nd_update', 1.0)
])
def test_scatters_by_indices_take_the_first_shard(behavior, method, expected):
  def scatter(v, x, i):
    return getattr(v, method)(i[:, None], updates=x)

  assert _after_scatter(
      scatter, tf1.VariableAggregation.ONLY_FIRST_REPLICA) == [4.0, expected]


@pytest.mark.parametrize('name, expected', (
    ('scatter_add', 4.0 + 2.0), ('scatter_sub', 4.0 - 2.0)))
def test_a_function_that_scatters_does_so_once(behavior, name, expected):
  assert _after_scatter(lambda v, x, i: getattr(tf1, name)(v, i, x),
                        tf1.VariableAggregation.NONE) == [4.0, expected]


@pytest.mark.parametrize('name', ['scatter_add', 'scatter_sub'])
def test_rows_may_have_an_unknown_rank(behavior, name):
  added = _after_scatter(
      lambda v, x, i: getattr(tf1, name)(
          v, i, tf1.placeholder_with_default(x, None)),
      tf1.VariableAggregation.NONE, values=(2.0, 2.0))
  assert added == [4.0, 6.0 if name == 'scatter_add' else 2.0]


@pytest.mark.parametrize('use', [lambda x: x, tf.identity])
@pytest.mark.parametrize('use_resource', [True, False])
def test_a_branch_that_returns_what_it_wrote_is_refused(
    behavior, use_resource, use):
  def shard(pack):
    v = tf1.get_variable('v', initializer=np.int64(5), trainable=False,
                         use_resource=use_resource)
    return tf.cond(go, lambda: pack(tf1.assign_sub(v, 1)),
                   lambda: pack(tf.constant(7, tf.int64)))

  with tf.Graph().as_default(), tf1.Session() as session:
    go = tf1.placeholder_with_default(True, [])
    with pytest.raises(TypeError, match=(
        'Received: a write to a variable in a branch. Return `tf.group')):
      shared_shards.SharedShards(['/cpu:0'] * 2).build(
          [functools.partial(shard, use)] * 2)
  with tf.Graph().as_default(), tf1.Session() as session:
    go = tf1.placeholder_with_default(True, [])
    first, _ = shared_shards.SharedShards(['/cpu:0'] * 2).build(
        [functools.partial(shard, tf.group)] * 2).results
    session.run(tf1.global_variables_initializer())
    session.run(first)
    session.run(first, {go: False})
    assert session.run(tf1.global_variables()[0]) == 4


def test_a_function_that_scatters_the_shards_own_is_refused(behavior):
  with pytest.raises(ValueError, match='`scatter_update` in several.*`v'):
    _after_scatter(lambda v, x, i: tf1.scatter_update(v, i, x),
                   tf1.VariableAggregation.NONE)


@pytest.mark.parametrize('group, total', (
    ([0, 1, 2], 6.0), ([2, 0], 4.0), (None, 2.0)))
def test_gradients_are_summed_over_a_group_or_averaged(behavior, group, total):
  strategy = shared_shards.SharedShards(['/cpu:0'] * 3)

  def fn(shard):
    v = tf1.get_variable('v', initializer=0.0)
    gradient, optimizer = tf.constant(shard + 1.0), (
        tf1.train.GradientDescentOptimizer(1.0))
    if group is None:
      return optimizer.apply_gradients([(gradient, v)])
    with strategy.extended.applying_sums:
      return optimizer.apply_gradients(
          [(strategy.extended.sum_over(group, gradient), v)])

  with tf.Graph().as_default(), tf1.Session() as session:
    first, *_ = strategy.build(_calls(fn, 3)).results
    session.run(tf1.global_variables_initializer())
    session.run(first)
    assert session.run(tf1.global_variables()[0]) == -total


def test_a_seed_draws_other_numbers_in_each_shard(behavior):
  strategy = shared_shards.SharedShards(['/cpu:0'] * 2)
  with tf.Graph().as_default(), tf1.Session() as session:
    drawn = strategy.build(
        [lambda: tf.nn.dropout(tf.ones([50]), 0.5, seed=1)] * 2).results
    first, second = session.run(drawn)
    assert (first != second).sum() > 10
