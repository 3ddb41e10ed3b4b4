# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of TowerExtended."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import tower_strategy

tf1 = tf.compat.v1


def _strategy():
  return tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1'])


def _batches(strategy, *parts):
  """Returns the value of each tower as one value of the strategy."""
  return strategy.experimental_distribute_values_from_function(
      lambda context: parts[context.replica_id_in_sync_group])


def test_a_run_has_the_rows_of_all_towers(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    strategy = _strategy()
    with strategy.scope():
      batches = _batches(strategy, tf.constant([1.]), tf.constant([2., 4.]))
      total, rows = strategy.run(
          lambda x: (tf.reduce_sum(x), 2 * x), args=(batches,))
      assert strategy.experimental_local_results(total) == (total,)
      assert session.run([total, rows])[0] == 7.0
      assert session.run(rows).tolist() == [2.0, 4.0, 8.0]
      for op in tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN:
        assert session.run(strategy.reduce(op, total, axis=None)) == 7.0
      assert session.run(strategy.reduce('SUM', rows, axis=0)) == 14.0
      assert session.run(strategy.reduce('MEAN', rows, axis=0)) == (
          pytest.approx(14 / 3))


def test_row_wise_ops_are_on_the_devices_of_the_towers(behavior):
  with tf.Graph().as_default() as graph:
    strategy = _strategy()
    with strategy.scope():
      batches = _batches(strategy, tf.ones([2, 1]), tf.ones([3, 1]))

      def fn(x):
        w = tf1.get_variable('w', [1, 1])
        return tf.reduce_max(tf.matmul(x, w, name='product'))

      strategy.run(fn, args=(batches,))
    for tower, rows in enumerate((2, 3)):
      product = graph.get_operation_by_name(f'tower_{tower}/product')
      assert product.device.endswith(f'CPU:{tower}')
      assert product.outputs[0].shape == [rows, 1]


def test_the_replica_is_alone(behavior):
  strategy = _strategy()

  def fn():
    context = tf.distribute.get_replica_context()
    return (context.num_replicas_in_sync, strategy.num_replicas_in_sync,
            context.merge_call(lambda strategy: strategy.num_replicas_in_sync),
            context.all_reduce('SUM', 3.0), context.all_reduce('MEAN', [3.0]))

  with tf.Graph().as_default(), strategy.scope():
    assert strategy.run(fn) == (1, 1, 1, 3.0, [3.0])
    assert strategy.num_replicas_in_sync == 2


def test_in_a_cluster_variables_are_on_the_parameter_servers(behavior):
  cluster = tf.train.ClusterSpec(
      {'ps': ['a:1', 'b:1'], 'worker': ['c:1', 'd:1']})
  setter = tf1.train.replica_device_setter(
      worker_device='/job:worker/task:1', cluster=cluster)

  def fn(x):
    return tf.multiply(x, tf1.get_variable('w', []), name='product')

  with tf.Graph().as_default() as graph, tf1.device(setter):
    strategy = _strategy()
    with strategy.scope():
      strategy.run(fn, args=(_batches(strategy, tf.ones([1]), tf.ones([2])),))
    w, = tf1.global_variables()
    assert w.device == '/job:ps/task:0/device:CPU:0'
    for tower in range(2):
      product = graph.get_operation_by_name(f'tower_{tower}/product')
      assert product.device == f'/job:worker/task:1/device:CPU:{tower}'


def test_estimator_trains_no_towers_in_one_task_of_several():
  strategy = _strategy()
  alone = {'chief': ['a:1']}
  for cluster, task in (({}, None), (alone, 'chief')):
    strategy.configure(tf1.ConfigProto(), cluster, task, 0)
  for others in ({'worker': ['b:1']}, {'ps': ['b:1']}):
    with pytest.raises(RuntimeError, match=(
        'must train in a process alone.*Received: .*chief:0.*Use .*replicate')):
      strategy.configure(tf1.ConfigProto(), {**alone, **others}, 'chief', 0)
  assert strategy.num_replicas_in_sync == 2


@pytest.mark.parametrize('num_devices, device', (
    (1, 'CPU:3'), (2, 'CPU:0')))
def test_variables_are_on_the_cpu_if_there_are_several_devices(
    behavior, num_devices, device):
  strategy = tower_strategy.TowerStrategy(['/cpu:3', '/cpu:2'][:num_devices])
  with tf.Graph().as_default(), strategy.scope():
    assert tf1.get_variable('w', []).device.endswith(device)


@pytest.mark.parametrize('make', [
    lambda x: x,
    lambda x: tf1.placeholder_with_default(x, [None, 1]),
    lambda x: tf1.placeholder_with_default(x, None),
    tf.sparse.from_dense, tf.RaggedTensor.from_tensor,
    lambda x: (tf.constant(7), x)])
def test_batches_of_every_kind_become_one(behavior, make):
  strategy = _strategy()
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    batch = _batches(strategy, make(tf.constant([[1.], [2.], [3.]])), make(
        tf.constant([[4.]])))

    def fn(x):
      if isinstance(x, tuple):
        assert session.run(x[0]) == 7
        x = x[1]
      x = (tf.sparse.to_dense(x) if isinstance(x, tf.SparseTensor) else
           x.to_tensor() if isinstance(x, tf.RaggedTensor) else x)
      return tf.reshape(x, [-1]) + 0.0

    assert session.run(strategy.run(fn, args=(batch,))).tolist() == [
        1., 2., 3., 4.]


def test_a_function_in_a_graph_has_all_rows(behavior):
  strategy = _strategy()
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    batches = _batches(strategy, tf.constant([1.]), tf.constant([2., 4.]))
    step = tf.function(
        lambda batches: strategy.run(tf.reduce_sum, args=(batches,)))
    assert session.run(step(batches)) == 7.0


@pytest.mark.parametrize('arguments, expected', (
    ({'trainable': False}, 'ONLY_FIRST_REPLICA'),
    ({'trainable': True}, 'NONE'),
    ({'trainable': False, 'aggregation': tf.VariableAggregation.SUM}, 'SUM'),
))
def test_aggregation_in_eager_execution(arguments, expected):
  with tower_strategy.TowerStrategy(['/cpu:0', '/cpu:1']).scope():
    assert tf.Variable(1.0, **arguments).aggregation.name == expected


def _run(fn):
  """Runs `fn` of [2.] in tower 0 and [2., 2.] in tower 1."""
  strategy = _strategy()
  with strategy.scope():
    return strategy, strategy.run(fn, args=(_batches(
        strategy, tf.fill([1], 2.0), tf.fill([2], 2.0)),))


def test_gradients_of_a_run_are_those_of_all_towers(behavior):
  # d/dw of 2 w + 4 w.
  def fn(x):
    w = tf1.get_variable('w', initializer=1.0)
    return tf.gradients(w * tf.reduce_sum(x), [w])[0]

  with tf.Graph().as_default(), tf1.Session() as session:
    _, gradient = _run(fn)
    session.run(tf1.global_variables_initializer())
    assert session.run(gradient) == 6


def test_the_spec_of_a_run_is_that_of_the_batch(behavior):
  def fn(x):
    return tf.estimator.EstimatorSpec(
        'train', loss=tf.reduce_sum(x), train_op=tf.no_op('train'))

  with tf.Graph().as_default(), tf1.Session() as session:
    _, spec = _run(fn)
    assert spec.train_op.name == 'train'
    assert session.run(spec.loss) == 6.0


def test_a_tower_waits_for_the_batches_of_all(behavior):
  strategy = _strategy()
  with tf.Graph().as_default(), tf1.Session() as session, strategy.scope():
    parts = [tf1.placeholder(tf.float32, [1]) for _ in range(2)]
    shared = tf1.placeholder(tf.float32, [])
    doubled, other = strategy.run(
        lambda x, y: (2 * x, y), args=(_batches(strategy, *parts), shared))
    # What all towers get is theirs as it is.
    assert other is shared
    own = 'tower_0/mul:0'
    assert session.run(own, {parts[0]: [3.0], parts[1]: [5.0]}) == [6.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match='must feed'):
      session.run(own, {parts[0]: [3.0]})
