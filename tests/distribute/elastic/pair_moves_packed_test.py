# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small variables cross the network together, large ones in parts.

No bit of them changes.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.distribute.elastic import transfers
from tests.helpers import strategy_worker
from tests.optimizers import elastic_graphs
from tfplugin.distribute import graph_order
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import pair_moves
from tfplugin.testing import clusters

tf1 = tf.compat.v1

PS, WORKER = 'ps', 'worker'


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=2)


def _resolver(cluster):
  return tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster.cluster_spec, task_type='worker', task_id=0)


def _loss(variables):
  random = np.random.RandomState(1)
  return tf.add_n([
      tf.cast(tf.reduce_sum(tf.square(
          v - random.standard_normal(v.shape))), tf.float32)
                   for v in variables]) / 2


def _model_of(shapes, dtypes=(tf.float32,)):
  """A model_fn with a variable of each shape, of each type."""

  def model_fn(features, labels, mode):
    del features, labels
    random = np.random.RandomState(0)
    loss = _loss([
        tf1.get_variable(f'v{index}_{dtype.name}', initializer=np.asarray(
            random.standard_normal(shape), dtype.as_numpy_dtype))
        for dtype in dtypes for index, shape in enumerate(shapes)])
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=elastic_graphs.sgd(0.25).minimize(
            loss, tf1.train.get_global_step()))

  return model_fn


def _strategy_transfers(cluster, shapes, **settings):
  worker = strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          _resolver(cluster), **settings),
      _model_of(shapes), cluster.target('worker', 0))
  result = transfers.of(worker.session, worker.spec.train_op)
  worker.close()
  return result


def _optimizer_transfers(cluster, shapes, use_resource=True, **settings):
  with tf.Graph().as_default() as graph, tf1.device(cluster.device_setter(0)):
    step = tf1.train.get_or_create_global_step()
    getter = tfplugin.ElasticAverageCustomGetter('/job:worker/task:0')
    with getter.scope():
      loss = _loss([
          tf1.get_variable('_'.join(map(str, ('v', index, *shape))), shape,
                           use_resource=use_resource)
          for index, shape in enumerate(shapes)])
    optimizer = elastic_graphs.make_optimizer(getter, **settings)
    train = optimizer.minimize(loss, step)
    starts = [tf1.global_variables_initializer(),
              tf1.local_variables_initializer(), optimizer.get_init_op(0)]
    with cluster.session(0, graph) as session:
      for start in starts:
        session.run(start)
      for exchange in optimizer.runs:
        session.run(exchange.serve)
        session.run(train)
        train = exchange.run
      return transfers.of(session, train)


FORMS = pytest.mark.parametrize('transfers_of', [
    _strategy_transfers, _optimizer_transfers,
    functools.partial(_optimizer_transfers, use_resource=False)],
                                ids=['strategy', 'optimizer', 'reference'])


# With two servers. To one go the end of the local step and the differences;
# from it come the centre, and the end of its updates. Each waits for the one
# before.
COMMUNICATION = ({(WORKER, PS): 2 * 2, (PS, WORKER): 2 * 2}, 4)
# In a branch, where whether it runs, and what starts it, are two for the first.
BRANCH = ({(WORKER, PS): 3 * 2, (PS, WORKER): 2 * 2}, 4)


@FORMS
def test_a_communication_is_two_messages_to_a_server_and_two_back(
    behavior, cluster, transfers_of):
  del behavior
  assert transfers_of(
      cluster, [[3, 2]] * 20, communication_period=1) == COMMUNICATION


@pytest.mark.sampled(3)
def test_220_variables_are_as_many_messages_as_20(cluster):
  assert _strategy_transfers(
      cluster, [[3, 2]] * 220, communication_period=1) == COMMUNICATION


@FORMS
def test_a_step_that_is_not_due_sends_as_many_without_values(
    behavior, cluster, transfers_of):
  """Whether it is due, and what would be moved, which is not there."""
  del behavior
  assert transfers_of(
      cluster, [[3, 2]] * 20, communication_period=3) == BRANCH


def test_an_overlapped_communication_leaves_no_message_to_a_step(
    behavior, cluster):
  del behavior
  settings = {'communication_period': 3, 'overlap': True}
  assert _strategy_transfers(cluster, [[3, 2]] * 20, **settings) == ({}, 0)
  # Its own run.
  settings['communication_period'] = 1
  assert _optimizer_transfers(cluster, [[3, 2]] * 20, **settings) == BRANCH


def test_others_are_sent_as_they_are(cluster):
  limit = 32 * 1024 // 4  # As docs/exchange.md has it, in floats.
  small = {(WORKER, PS): 4, (PS, WORKER): 4}
  assert _strategy_transfers(
      cluster, [[limit]] * 8, communication_period=1).messages == small
  assert _strategy_transfers(
      cluster, [[limit]] * 4 + [[limit + 1]] * 4, communication_period=1,
  ).messages == {way: count + 4 for way, count in small.items()}


# What docs/exchange.md has of parts, in floats: the least one.
LEAST_PART = 256 * 1024 // 4


@FORMS
@pytest.mark.parametrize('size, count', [
    (LEAST_PART, 1), (LEAST_PART + 1, 2), (3 * LEAST_PART, 3),
    (16 * LEAST_PART, 8)], ids=str)
def test_the_parts_of_a_large_variable_cost_one_wait(
    behavior, cluster, transfers_of, size, count):
  del behavior
  messages, waits = COMMUNICATION
  # Servers take turns with variables: the other one has the small one.
  assert transfers_of(cluster, [[size], [2]], communication_period=1) == (
      {way: 2 * 2 - 1 + count for way in messages}, waits)


@FORMS
def test_a_step_that_may_not_be_due_sends_whole_variables(
    behavior, cluster, transfers_of):
  """Workers that exchange whole variables come apart."""
  del behavior
  small, large = (
      transfers_of(cluster, [[size], [2]], communication_period=2)
      for size in (3, 16 * LEAST_PART))
  assert large == small


def test_an_overlapped_communication_has_parts(behavior, cluster):
  del behavior
  messages, waits = BRANCH
  assert _optimizer_transfers(
      cluster, [[16 * LEAST_PART], [2]], communication_period=1, overlap=True,
  ) == ({way: count + 7 for way, count in messages.items()}, waits)


def test_a_variable_that_is_a_part_of_many_is_sent_as_it_is(cluster):
  assert _strategy_transfers(
      cluster, [[2 * LEAST_PART]] * 16, communication_period=1,
  ).messages == {(WORKER, PS): 2 + 16, (PS, WORKER): 2 + 16}


def _pair(size, device, use_resource, touched=None):
  with tf1.device(device):
    center = tf1.get_variable(f'center_{size}{device[-1]}', [size],
                              use_resource=use_resource)
  with tf1.device('/job:worker/task:0'):
    copy = tf1.get_variable(f'copy_{size}{device[-1]}', [size],
                            use_resource=use_resource)
  return elastic_pairs.Pair([copy], center, True, touched=touched)


@pytest.mark.parametrize('wire', [
    None, pair_moves.Wire('float16'), pair_moves.Wire('int8')],
                         ids=['whole', 'float16', 'int8'])
@pytest.mark.parametrize('use_resource', [True, False])
def test_a_server_reads_the_largest_last(behavior, wire, use_resource):
  """And so sends it first, if it has one thread; each server for itself."""
  del behavior
  sizes = [600_000, 200_000, 400_000]
  with tf.Graph().as_default():
    pairs = [_pair(size, f'/job:ps/task:{task}', use_resource)
             for task in range(2) for size in sizes]
    differences = pair_moves.receive_all(pairs, [0.5] * len(pairs), wire)
    names = [pair.center.op.name for pair in pairs]
    before = [{op.name for op in graph_order.upstream([each.center.op])}
              for each in differences]
  for index, found in enumerate(before):
    task, size = divmod(index, 3)
    assert {name for name in names if name in found} == {
        names[3 * task + other] for other in range(3)
        if sizes[other] <= sizes[size]}


WIRES = {None: None, 'float16': pair_moves.Wire('float16'),
         'int8': pair_moves.Wire('int8')}


@pytest.mark.parametrize('wire, large, small', [
    # 5.6 and 2.8 MB in all, an eighth is 700 and 350 KB: 6 and 3 parts.
    (None, [652 * 256] * 5 + [165_440], [521 * 256] * 2 + [133_248]),
    ('float16', [652 * 256] * 5 + [165_440], [521 * 256] * 2 + [133_248]),
    # Of 256 KB: 4 and 2 parts.
    ('int8', [977 * 256] * 3 + [249_664], [782 * 256, 199_808])],
                         ids=['whole', 'float16', 'int8'])
def test_parts_are_an_eighth_of_what_a_server_sends_in_whole_blocks(
    behavior, wire, large, small):
  del behavior
  with tf.Graph().as_default():
    pairs = [_pair(size, f'/job:ps/task:{task}', True)
             for task in range(2) for size in (1_000_000, 400_000)]
    differences = pair_moves.receive_all(
        pairs, [0.5] * len(pairs), WIRES[wire], True)
  assert [each.sizes for each in differences] == [large, small] * 2
  assert list(map(sum, (large, small))) == [1_000_000, 400_000]


@pytest.mark.parametrize('wire', WIRES, ids=str)
@pytest.mark.parametrize('use_resource', [True, False])
def test_what_has_arrived_goes_back_while_the_rest_follows(
    behavior, wire, use_resource):
  del behavior
  with tf.Graph().as_default():
    pair = _pair(1_000_000, '/job:ps/task:0', use_resource)
    difference, = pair_moves.receive_all([pair], [0.5], WIRES[wire], True)
    assert len(difference.sent) == (4 if wire == 'int8' else 8)
    for index, part in enumerate(difference.sent):
      assert _parts_behind(part) == {index}


def _parts_behind(tensor):
  """Which outputs of ops that take a tensor apart are behind another one."""
  tensors, found = [tensor], set()
  for each in tensors:
    if each.op.type in ('Split', 'SplitV'):
      found.add(each.value_index)
    tensors += [i for i in each.op.inputs if all(i is not t for t in tensors)]
  return found


def test_several_copies_rows_and_a_server_of_its_own_have_no_parts(behavior):
  del behavior
  size, server, worker = 1_000_000, '/job:ps/task:0', '/job:worker/task:0'
  with tf.Graph().as_default():
    two = _pair(size, server, True)
    two.copies.append(tf1.get_variable('other', [size]))
    touched = tf1.get_variable('touched', [size], tf.bool)
    for pair in (two, _pair(size + 2, server, True, touched),
                 _pair(size + 3, worker, True)):
      difference, = pair_moves.receive_all([pair], [0.5], has_parts=True)
      assert difference.sizes is None


def test_rows_wait_for_no_other_variable(behavior):
  """They come from the worker: each would wait for a way."""
  del behavior
  with tf.Graph().as_default():
    rows = [tf1.get_variable(f'touched_{size}', [size], tf.bool)
            for size in (200_000, 400_000)]
    pairs = [_pair(size, '/job:ps/task:0', True, touched)
             for size, touched in zip((200_000, 400_000), rows)]
    pairs.append(_pair(600_000, '/job:ps/task:0', True))
    found = [{op.name for op in graph_order.upstream([each.center.op])}
             for each in pair_moves.receive_all(pairs, [0.5] * len(pairs))]
  for pair, names in zip(pairs, found):
    assert {other.center.op.name for other in pairs} & names == {
        pair.center.op.name}


@pytest.mark.sampled(8)
@pytest.mark.parametrize('period', [1, 2])
@pytest.mark.parametrize('settings', [
    {}, {'exchange_dtype': 'float16'}, {'exchange_dtype': 'int8'},
    {'rho': 0.125}, {'on_nonfinite': 'drop'},
    {'update_order': 'elastic_first'}], ids=str)
def test_no_bit_changes_on_the_way(behavior, cluster, settings, period):
  """A process alone, where nothing is packed or in parts, has the same values.

  With period 1 the last variable goes in parts, also as int8.
  """
  del behavior
  shapes = [[], [1], [7], [2, 3, 4], [300], [9000], [5, 0],
            *[[263_000]] * (period == 1)]
  model_fn = _model_of(shapes, (tf.float32, tf.float64))
  values = []
  for resolver, target in ((_resolver(cluster), cluster.target('worker', 0)),
                           (None, '')):
    worker = strategy_worker.StrategyWorker(
        elastic_average_strategy.ElasticAverageStrategy(
            resolver, communication_period=period, moving_rate=0.3,
            **settings),
        model_fn, target)
    worker.step(5)
    names = [v.op.name for v in worker.graph.get_collection(
        tf1.GraphKeys.TRAINABLE_VARIABLES)]
    values.append({name: (worker.value(name), worker.center(name))
                   for name in names})
    worker.close()
  packed, alone = values
  assert len(packed) == 2 * len(shapes)
  for name, (copy, center) in packed.items():
    np.testing.assert_array_equal(copy, alone[name][0])
    np.testing.assert_array_equal(center, alone[name][1])
    assert copy.size == 0 or (copy != center).any()  # They have moved.
