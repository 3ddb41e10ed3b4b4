# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the parameter-server strategies share: the step, refusing."""

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.packed import packed_programs
from tests.helpers import strategy_worker
from tests.programs import accumulation
from tfplugin import distribute
from tfplugin.distribute import cluster_config
from tfplugin.distribute import parameter_server_base as base
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.testing import clusters

tf1 = tf.compat.v1


def test_reduction_towards_tensors_is_no_optimizers():
  variable = tf.Variable(1.0)
  assert base.updates_variables([(1.0, variable)])
  assert not base.updates_variables([(1.0, variable), (1.0, tf.ones([]))])


def beside_optimizers(features, labels, mode):
  """Two optimizers; the step is advanced after them, and is the loss."""
  del features, labels
  step = tf1.train.get_global_step()
  trained = [
      tf1.train.GradientDescentOptimizer(0.5).minimize(
          tf1.get_variable(name, initializer=1.0)) for name in 'ab']
  with tf.control_dependencies(trained):
    advanced = tf1.assign_add(step, 1)
  return tf1.estimator.EstimatorSpec(
      mode, loss=tf.cast(advanced, tf.float32), train_op=advanced.op)


def _elastic(devices):
  strategy = elastic_average_strategy.ElasticAverageStrategy(
      communication_period=2, moving_rate=0.5)
  if devices:
    # As on a worker with two GPUs, which there are not.
    strategy._extended = elastic_average_strategy.ElasticAverageExtended(
        strategy, strategy.extended._settings,
        cluster_resolver=(
            tf.distribute.cluster_resolver.TFConfigClusterResolver()),
        compute_devices=devices)
  return strategy


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_step_that_the_model_advances_counts_communications(behavior, devices):
  worker = strategy_worker.StrategyWorker(
      _elastic(devices), beside_optimizers)
  # The gradient is 1 on each device, and they are summed. Centre and copy meet.
  moved = 0.5 * len(devices or '1')
  for step in range(1, 5):
    worker.step()
    communications = step // 2
    assert worker.value('local_step') == step
    assert worker.value('global_step') == communications
    for name in 'ab':
      assert worker.center(name) == 1 - moved * communications
      assert worker.value(name) == 1 - moved * (communications + step % 2)


@pytest.mark.parametrize('devices', [None, ['/cpu:0', '/cpu:1']])
def test_a_warm_start_reaches_shared_variables(behavior, devices, tmp_path):
  """TensorFlow's wrapper of several devices would keep the initialiser."""
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('count', initializer=7)
    tf1.train.create_global_step()
    session.run(tf1.global_variables_initializer())
    session.run(tf1.train.get_global_step().assign(3))
    path = tf1.train.Saver().save(session, str(tmp_path / 'old'))
  with tf.Graph().as_default(), tf1.Session() as session:
    with _elastic(devices).scope():
      tf1.train.create_global_step()
      tf1.get_variable('count', initializer=1, trainable=False)
    tf1.train.warm_start(path, ['.*'])
    session.run(tf1.global_variables_initializer())
    assert session.run([tf1.train.get_global_step().read_value(), *(
        v.read_value() for v in tf1.global_variables() if 'count' in v.name
    )]) == [3, 7]



def test_one_device_gets_its_part_of_the_input(behavior):
  strategy = elastic_average_strategy.ElasticAverageStrategy()
  with tf.Graph().as_default(), strategy.scope(), tf1.Session() as session:
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(2.0))
    assert not tf.is_tensor(values)  # As what Estimator feeds.
    doubled = strategy.run(
        tf.autograph.experimental.do_not_convert(lambda x, y: x * y),
        args=(values,), kwargs={'y': values})
    assert session.run(doubled) == 4.0


@pytest.mark.parametrize('make', (
    lambda: distribute.DropStaleGradientStrategy(staleness=0),
    distribute.ElasticAverageStrategy))
@pytest.mark.parametrize('use', (
    lambda strategy: strategy.scope(),
    lambda strategy: strategy.run(lambda: None),
    lambda strategy: strategy.experimental_distribute_dataset(
        tf.data.Dataset.range(2)),
    lambda strategy: strategy.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.range(2))))
def test_eager_execution_is_refused(make, use):
  strategy = make()
  with pytest.raises(RuntimeError, match=(
      f'{type(strategy).__name__} works in a graph')):
    use(strategy)


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=2)


@pytest.mark.parametrize('program', packed_programs.PROGRAMS)
def test_trains_as_tensorflows_strategy(behavior, cluster, program):
  del behavior
  build = packed_programs.PROGRAMS[program]
  few, values = packed_programs.trained('plain, strategy', cluster, build)
  many, expected = packed_programs.by_strategy(
      packed_programs.tensorflows, cluster,
      packed_programs.model_of(build, packed_programs.sgd))
  assert sum(few.values()) < sum(many.values())
  assert values.keys() == expected.keys()
  for name, value in values.items():
    np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_an_optimizer_in_a_branch(behavior, tmp_path):
  """TensorFlow's own strategy refuses it in control flow v2."""
  del behavior
  program = accumulation.PROGRAM
  values = []
  for name, strategy in (
      ('one', None), ('packed', distribute.PackedParameterServerStrategy())):
    estimator = tf.estimator.Estimator(
        program.model_fn, config=tf.estimator.RunConfig(
            str(tmp_path / name), train_distribute=strategy))
    estimator.train(lambda: program.dataset(4), steps=4)
    values.append(estimator.get_variable_value('kernel'))
  np.testing.assert_array_equal(*values)


_NUMBERED = {'chief': ['127.0.0.1:21001'], 'ps': ['127.0.0.1:21002'],
             'worker': {1: '127.0.0.1:21003', 3: '127.0.0.1:21004'}}


@pytest.mark.parametrize('task, pipeline', (
    (cluster_config.Task('chief', 0), 0), (cluster_config.Task('worker', 1), 1),
    (cluster_config.Task('worker', 3), 2)))
@pytest.mark.parametrize('make', [
    lambda: distribute.DropStaleGradientStrategy(staleness=1),
    distribute.ElasticAverageStrategy])
def test_workers_with_numbers_divide_the_input_without_gaps(
    monkeypatch, make, task, pipeline):
  contexts = []

  def input_fn(context):
    contexts.append(context)
    return tf.data.Dataset.from_tensors(1.0)

  monkeypatch.setenv('TF_CONFIG', cluster_config.encode(_NUMBERED, task))
  with tf.Graph().as_default():
    make().make_input_fn_iterator(input_fn)
  [context] = contexts
  assert context.input_pipeline_id == pipeline
  assert context.num_input_pipelines == 3


def test_a_strategy_refuses_numbered_workers_without_a_first_one(monkeypatch):
  cluster = {key: _NUMBERED[key] for key in ('ps', 'worker')}
  monkeypatch.setenv('TF_CONFIG', cluster_config.encode(
      cluster, cluster_config.Task('worker', 3)))
  with pytest.raises(ValueError, match=(
      'must have a chief or worker:0 for a strategy.*Rename worker:1')):
    distribute.ElasticAverageStrategy()
