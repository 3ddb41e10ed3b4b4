# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Context, loops, hooks and graph of programs under ShardedTPUEstimator.

The model is y = w * x with w = 0, x = 1, 2, 3, 4 and labels 2 x: one step of
SGD at 0.1 ends at 3 for the mean over the batch.
"""

import sys

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import estimator as tfplugin_estimator

tf1 = tf.compat.v1
_PIPELINE = tf1.estimator.tpu.InputPipelineConfig
_X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
_Spec = tf1.estimator.tpu.TPUEstimatorSpec


def _train_spec(features, labels, mode, **fields):
  w = tf1.get_variable('w', initializer=[[0.0]])
  loss = tf.reduce_mean(tf.square(labels - features @ w))
  optimizer = tfplugin.CrossShardOptimizer(
      tf1.train.GradientDescentOptimizer(0.1))
  return _Spec(mode, loss=loss, train_op=optimizer.minimize(
      loss, tf1.train.get_global_step()), **fields)


def _model_fn(features, labels, mode, params):
  del params
  return _train_spec(features, labels, mode)


def _input_fn(params):
  data = tf1.data.Dataset.from_tensor_slices((_X, 2.0 * _X)).repeat()
  return data.batch(params['batch_size'], drop_remainder=True)


def _make(tmp_path, model_fn=_model_fn, num_shards=2, use_tpu=False,
          train_batch_size=4, eval_batch_size=None, devices=None,
          **tpu_config):
  config = tf1.estimator.tpu.RunConfig(
      master='grpc://10.0.0.1:8470' if use_tpu else '', model_dir=str(tmp_path),
      tpu_config=tf1.estimator.tpu.TPUConfig(
          num_shards=num_shards, **tpu_config))
  return tfplugin_estimator.ShardedTPUEstimator(
      model_fn, config=config, use_tpu=use_tpu, eval_batch_size=eval_batch_size,
      train_batch_size=train_batch_size, devices=devices)


def _after(steps):
  """w <- w + 0.2 * mean(x**2) * (2 - w), from 0."""
  w = 0.0
  for _ in range(steps):
    w += 1.5 * (2.0 - w)
  return w


@pytest.mark.usefixtures('behavior')
def test_scaffold_fn_starts_from_a_checkpoint_by_names(tmp_path):
  _make(tmp_path / 'first').train(_input_fn, max_steps=1)

  def model_fn(features, labels, mode, params):
    del params

    def scaffold_fn():
      tf1.train.init_from_checkpoint(str(tmp_path / 'first'), {'w': 'w'})
      return tf1.train.Scaffold()

    return _train_spec(features, labels, mode, scaffold_fn=scaffold_fn)

  estimator = _make(tmp_path / 'second', model_fn)
  estimator.train(_input_fn, max_steps=1)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[_after(2)]], rtol=1e-6)


@pytest.mark.usefixtures('behavior')
def test_each_call_of_a_per_shard_input_fn_reads_its_part(tmp_path):
  calls = []

  def input_fn(params):
    _, index, count, consumed = (
        params['context'].current_input_fn_deployment())
    calls.append((index, count, consumed, params['context'].current_host))
    x = _X[index::count]
    return tf1.data.Dataset.from_tensor_slices((x, 2.0 * x)).batch(
        params['batch_size'])

  estimator = _make(tmp_path,
                    per_host_input_for_training=_PIPELINE.PER_SHARD_V1)
  estimator.train(input_fn, max_steps=1)
  assert calls == [(0, 2, 1, 0), (1, 2, 1, 0)]
  # All four rows, each once.
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[3.0]], rtol=1e-6)


@pytest.mark.parametrize('num_shards', (1, 2))
@pytest.mark.parametrize('deployment', (
    _PIPELINE.PER_HOST_V1, _PIPELINE.PER_HOST_V2, _PIPELINE.BROADCAST))
def test_context_of_one_input_for_all_shards(tmp_path, num_shards, deployment):
  seen = []

  def model_fn(features, labels, mode, params):
    seen.append(params['context'].num_replicas)
    return _train_spec(features, labels, mode)

  def input_fn(params):
    context = params['context']
    seen.append(context.current_input_fn_deployment()[1:])
    return _input_fn(params).shard(context.num_hosts, context.current_host)

  estimator = _make(tmp_path, model_fn, num_shards,
                    per_host_input_for_training=deployment)
  estimator.train(input_fn, max_steps=1)
  assert seen == [(0, 1, num_shards)] + [num_shards] * num_shards
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[3.0]], rtol=1e-6)


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('decorate, expected', (
    (tfplugin_estimator.drop_stale_gradients(staleness=0), 3.0),
    (tfplugin_estimator.clip_variables(rules={'w': 0}, max_norm=2.0), 2.0)))
def test_decorators_that_change_the_update(tmp_path, decorate, expected):
  estimator = _make(tmp_path, decorate(_model_fn))
  estimator.train(_input_fn, steps=1)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[expected]], rtol=1e-6)


class _Counting(tf1.train.SessionRunHook):
  """Counts the steps that it sees."""

  steps = 0

  def after_run(self, run_context, run_values):
    self.steps += 1


@pytest.mark.usefixtures('behavior')
def test_every_step_ends_on_the_host_whatever_the_loop(tmp_path):
  """5 steps and 2 more, in loops of 3; hooks of both kinds see each of them."""
  own = []

  def model_fn(features, labels, mode, params):
    del params
    own.append(_Counting())
    return _train_spec(features, labels, mode, training_hooks=[own[-1]])

  hook = _Counting()
  estimator = _make(tmp_path, model_fn, iterations_per_loop=3)
  estimator.train(_input_fn, steps=5, hooks=[hook])
  assert (hook.steps, own[0].steps) == (5, 5)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[_after(5)]], rtol=1e-6)
  estimator.train(_input_fn, max_steps=7)
  assert estimator.get_variable_value('global_step') == 7
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[_after(7)]], rtol=1e-6)


@pytest.mark.parametrize('make_spec, error, match', (
    (lambda spec: None, TypeError, 'must return a `tf.estimator.EstimatorSpec'),
    (lambda spec: _Spec('train', loss=spec.loss), ValueError, 'train_op'),
    (lambda spec: _Spec('train', train_op=spec.train_op), ValueError, 'loss')))
def test_spec_that_cannot_train_is_refused(tmp_path, make_spec, error, match):
  def model_fn(features, labels, mode, params):
    del params
    return make_spec(_train_spec(features, labels, mode))

  with pytest.raises(error, match=match):
    _make(tmp_path, model_fn).train(_input_fn, steps=1)


def test_shards_that_return_different_specs_are_refused(tmp_path):
  scaffold_fns = [None, tf1.train.Scaffold]

  def model_fn(features, labels, mode, params):
    del params
    return _train_spec(features, labels, mode, scaffold_fn=scaffold_fns.pop(0))

  with pytest.raises(ValueError, match='`scaffold_fn` is None in shard 0 and '
                     'given in shard 1'):
    _make(tmp_path, model_fn).train(_input_fn, steps=1)


def test_batch_sizes_are_asked_for_where_they_are_missing(tmp_path):
  estimator = _make(tmp_path)
  estimator.train(_input_fn, steps=1)
  with pytest.raises(ValueError, match='`eval_batch_size` must be given'):
    estimator.evaluate(_input_fn, steps=1)
  with pytest.raises(ValueError, match='`predict_batch_size` must be given'):
    next(estimator.predict(_input_fn))
  with pytest.raises(ValueError, match='`eval_batch_size` must be a positive '
                     'multiple of the number of shards, 2. Received: 5'):
    _make(tmp_path, eval_batch_size=5)


class _BuiltError(Exception):
  """The graph is there, and is not to be run."""


class _StopHook(tf1.train.SessionRunHook):
  """Keeps the graph and goes no further."""

  def begin(self):
    raise _BuiltError(tf1.get_default_graph().as_graph_def())


def _nodes(graph_def):
  """All ops of a graph and of the functions in it."""
  functions = graph_def.library.function
  return [*graph_def.node, *(node for f in functions for node in f.node_def)]


@pytest.mark.usefixtures('behavior')
def test_shards_are_on_their_devices_in_turn(tmp_path):
  """Built and not run: there are no GPUs."""
  estimator = _make(tmp_path, num_shards=4, devices=['/gpu:0', '/gpu:1'])
  with pytest.raises(_BuiltError) as built:
    estimator.train(_input_fn, steps=1, hooks=[_StopHook()])
  by_name = {node.name: node for node in built.value.args[0].node}
  assert [by_name[f'{scope}matmul'].device[-5:] for scope in (
      '', 'tower_1/', 'tower_2/', 'tower_3/')] == [
          'GPU:0', 'GPU:1', 'GPU:0', 'GPU:1']
  assert by_name['w'].device.endswith('CPU:0')


def _groups_of_sums(nodes):
  """The groups of each CrossReplicaSum."""
  by_name = {node.name: node for node in nodes}
  constants = [by_name[node.input[1].split(':')[0]] for node in nodes
               if node.op == 'CrossReplicaSum']
  return [tf.make_ndarray(constant.attr['value'].tensor).tolist()
          for constant in constants]


@pytest.mark.usefixtures('behavior')
@pytest.mark.parametrize('groups', (None, [[0, 2], [1, 3]]))
def test_graph_for_a_tpu_is_that_of_tpu_estimator(
    tmp_path, monkeypatch, groups):
  """Built by `train` up to the session, for a TPU of which only sizes exist."""
  seen = []

  def model_fn(features, labels, mode, params):
    seen.append((params['batch_size'], params['context'].num_replicas,
                 features.shape))
    w = tf1.get_variable('w', initializer=[[0.0]])
    loss = tf.reduce_mean(tf.square(labels - features @ w))
    optimizer = tfplugin.CrossShardOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), group_assignment=groups)
    total = tfplugin.cross_replica_sum(loss, groups)
    return _Spec(mode, loss=total, train_op=optimizer.minimize(
        loss, tf1.train.get_global_step()))

  system = tf.tpu.experimental.TPUSystemMetadata(
      num_cores=4, num_hosts=1, num_of_cores_per_host=4, topology=None,
      devices=[])
  monkeypatch.setattr(
      sys.modules['tensorflow.python.tpu.tpu_system_metadata'],
      '_query_tpu_system_metadata', lambda *args, **kwargs: system)
  estimator = _make(tmp_path, model_fn, num_shards=4, use_tpu=True,
                    train_batch_size=8)
  with pytest.raises(_BuiltError) as built:
    estimator.train(_input_fn, steps=1, hooks=[_StopHook()])
  assert seen == [(2, 4, (2, 1))]
  nodes = _nodes(built.value.args[0])
  assert [node.attr['num_replicas'].i for node in nodes
          if node.op == 'TPUReplicateMetadata'] == [4]
  # The loss and the one gradient, once each.
  assert _groups_of_sums(nodes) == [groups or [[0, 1, 2, 3]]] * 2


def test_devices_that_can_be_read_once_serve_every_graph(tmp_path):
  estimator = _make(tmp_path, devices=iter(['/cpu:0', '/cpu:1']))
  for steps in (1, 2):
    estimator.train(_input_fn, max_steps=steps)
  np.testing.assert_allclose(
      estimator.get_variable_value('w'), [[_after(2)]], rtol=1e-6)
