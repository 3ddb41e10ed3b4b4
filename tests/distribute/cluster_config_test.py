# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading TF_CONFIG, alone and by the strategies."""

import json
import os

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task

tf1 = tf.compat.v1

CLUSTER = {'chief': ['127.0.0.1:21001'], 'ps': ['127.0.0.1:21002']}


def test_what_is_encoded_is_decoded():
  task = cluster_config.Task('ps', 0)
  value = cluster_config.encode(CLUSTER, task)
  assert cluster_config.decode(value) == (CLUSTER, task)


@pytest.mark.parametrize('value', [
    '', ' ', '{}', '{"environment": "cloud"}',
    '{"task": {"type": "worker", "index": 0}}'])
def test_without_a_cluster_there_is_no_task(value, monkeypatch):
  assert cluster_config.decode(value) == ({}, None)
  # A strategy leaves a value that TensorFlow can parse.
  monkeypatch.setenv('TF_CONFIG', value)
  cluster_config.rewrite()
  assert tf.estimator.RunConfig().is_chief


def test_the_evaluator_is_in_no_cluster():
  value = json.dumps({'cluster': CLUSTER, 'task': {'type': 'evaluator'}})
  assert cluster_config.decode(value)[1].name == 'evaluator:0'


@pytest.mark.parametrize('value, message', [
    ('{cluster', 'must be JSON.*Received: .{cluster.*Set it as'),
    ('[1]', 'must be a JSON object'),
    (json.dumps({'cluster': CLUSTER}), 'which `task` this process is'),
    (json.dumps({'cluster': CLUSTER, 'task': {'index': 0}}), '`task`'),
    (json.dumps({'cluster': CLUSTER, 'task': {'type': 'ps', 'index': 'a'}}),
     '`task`'),
    (json.dumps({'cluster': CLUSTER, 'task': {'type': 'ps', 'index': 1}}),
     r'\(ps:0, chief:0, evaluator:0\). Received: ps:1'),
    (json.dumps({'cluster': CLUSTER, 'task': {'type': 'worker', 'index': 0}}),
     'Received: worker:0'),
    # Two would write the same evaluations and exports.
    (json.dumps({'cluster': {**CLUSTER, 'evaluator': ['e:1', 'f:1']},
                 'task': {'type': 'evaluator', 'index': 1}}),
     'one evaluator.* evaluator:0. Received: evaluator:1'),
    (json.dumps({'cluster': {'ps': 'localhost:1'}, 'task': {'type': 'ps'}}),
     '`cluster`.*must map each job'),
    (json.dumps({'cluster': {'ps': ['localhost']}, 'task': {'type': 'ps'}}),
     'address "host:port"'),
    # TensorFlow waits for such a host without an end.
    (json.dumps({'cluster': {'ps': ['::1:2222']}, 'task': {'type': 'ps'}}),
     r'"\[::1\]:port". Received: .::1:2222'),
    *[(json.dumps({'cluster': {'ps': [address]}, 'task': {'type': 'ps'}}),
       f'address "host:port".*Received: .{address}. in')
      for address in ('a:0', 'a:65536', 'a:²', ':2222')],
    # Of a list of hosts that a program has split at its commas.
    (json.dumps({'cluster': {'worker': ['a:1', ' b:1'], 'ps': ['c:1']},
                 'task': {'type': 'ps'}}), "address.*Received: ' b:1' in"),
    (json.dumps({'cluster': {'worker': ['grpc://a:1'], 'ps': ['c:1']},
                 'task': {'type': 'ps'}}), "address.*Received: 'grpc://a:1'"),
    (json.dumps({'cluster': {'chief': ['a:1', 'b:1'], 'ps': ['c:1']},
                 'task': {'type': 'ps'}}), 'one .*Received: chief:0, chief:1'),
    (json.dumps({'cluster': {**CLUSTER, 'master': ['a:1']},
                 'task': {'type': 'ps'}}), 'Received: chief:0, master:0'),
    (json.dumps({'cluster': {'worker': {'x': 'a:1'}, 'ps': ['b:1']},
                 'task': {'type': 'ps'}}), 'of one by index'),
    (json.dumps({'cluster': {'worker': {'3': 'a:1'}, 'ps': ['b:1']},
                 'task': {'type': 'worker', 'index': 0}}),
     r'\(ps:0, worker:3, evaluator:0\). Received: worker:0'),
    (json.dumps({'task': {'type': 'ps', 'index': 0}}),
     'must have the cluster of its `task`'),
    # Each of the tasks would train alone, in the same model_dir.
    *((json.dumps({'sparseCluster': {'worker': workers, 'ps': ['b:1']},
                   'task': {'type': job, 'index': 0}}),
       'as `cluster`, not as `sparseCluster`.*`enableDynamicWorker: true`')
      for job, workers in (('chief', {}), ('worker', {'0': 'a:1'}))),
])
def test_a_bad_value_is_refused(value, message):
  with pytest.raises(ValueError, match=message):
    cluster_config.decode(value)


def test_parameter_servers_start_first_and_the_evaluator_last():
  tasks = cluster_config.tasks_of({'worker': ['a:1', 'b:1'], 'ps': ['c:1'],
                              'chief': ['d:1']}, evaluator=True)
  assert [t.name for t in tasks] == ['ps:0', 'chief:0', 'worker:0', 'worker:1',
                                     'evaluator:0']


@pytest.mark.parametrize('make', [
    distribute.ElasticAverageStrategy, distribute.CrossShardStrategy,
    distribute.TowerStrategy,
    lambda: distribute.DropStaleGradientStrategy(staleness=1)])
@pytest.mark.parametrize('value, message', [
    ('{cluster', '`TF_CONFIG` must be JSON'),
    (json.dumps({'cluster': CLUSTER}), 'which `task` this process is'),
    (json.dumps({'cluster': CLUSTER, 'task': {'type': 'ps', 'index': 1}}),
     'Received: ps:1')])
def test_a_strategy_refuses_a_bad_value(monkeypatch, make, value, message):
  monkeypatch.setenv('TF_CONFIG', value)
  with pytest.raises(ValueError, match=message):
    make()


def test_the_resolver_knows_the_cluster_and_the_task(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', cluster_config.encode(
      CLUSTER, cluster_config.Task('ps', 0)))
  resolver = cluster_config.resolver()
  assert resolver.cluster_spec().as_dict() == CLUSTER
  assert (resolver.task_type, resolver.task_id) == ('ps', 0)


# What launchers write: who, the value, what is read.
FORMS = {
    'TonY and by hand: no chief': (
        {'cluster': {'worker': ['a:1', 'b:1'], 'ps': ['c:1']},
         'task': {'type': 'worker', 'index': 0}},
        {'worker': ['a:1', 'b:1'], 'ps': ['c:1']}, 'worker:0',
        'worker:0 is the chief'),
    'CloudML: master, index as a string, foreign keys': (
        {'cluster': {'master': ['a:1'], 'worker': ['b:1'], 'ps': ['c:1']},
         'task': {'type': 'worker', 'index': '0', 'trial': '', 'cloud': 'x'},
         'job': {'scale_tier': 'CUSTOM', 'args': ['--x=1']},
         'environment': 'cloud'},
        {'master': ['a:1'], 'worker': ['b:1'], 'ps': ['c:1']}, 'worker:0',
        'master:0 is the chief'),
    'SageMaker: one instance of master': (
        {'cluster': {'master': ['algo-1:2222']}, 'environment': 'cloud',
         'task': {'type': 'master', 'index': 0}},
        {}, None, 'only task'),
    'Vertex: one replica': (
        {'cluster': {'chief': ['cmle-training-chief-0:2222']},
         'environment': 'cloud', 'task': {'type': 'chief', 'index': 0}},
        {}, None, 'only task'),
    'one replica, an address without a port': (
        {'cluster': {'chief': ['localhost']},
         'task': {'type': 'chief', 'index': '0'}}, {}, None, 'only task'),
    'CloudML: no cluster, a trial': (
        {'cluster': {}, 'task': {'trial': '1'}}, {}, None, 'no cluster'),
    'nothing': ({'cluster': {}, 'task': {}}, {}, None, 'no cluster'),
    'a sparse ClusterSpec': (
        {'cluster': {'worker': {'3': 'd:1'}, 'chief': ['a:1'], 'ps': ['c:1']},
         'task': {'type': 'worker', 'index': 3}},
        {'worker': {3: 'd:1'}, 'chief': ['a:1'], 'ps': ['c:1']}, 'worker:3',
        '2 that train'),
    'Kubeflow: an evaluator in the cluster': (
        {'cluster': {'chief': ['a:1'], 'ps': ['c:1'], 'evaluator': ['e:1']},
         'task': {'type': 'evaluator', 'index': 0}, 'environment': 'cloud'},
        {'chief': ['a:1'], 'ps': ['c:1']}, 'evaluator:0', '1 that train'),
    'TonY: an evaluator whose cluster is itself alone': (
        {'cluster': {'evaluator': ['e:1']},
         'task': {'type': 'evaluator', 'index': 0}},
        {'evaluator': ['e:1']}, 'evaluator:0', 'does not know the cluster'),
    'TonY: extra jobs': (
        {'cluster': {'chief': ['a:1'], 'ps': ['c:1'], 'tensorboard': ['t'],
                     'notebook': ['n:1']},
         'task': {'type': 'ps', 'index': 0}},
        {'chief': ['a:1'], 'ps': ['c:1']}, 'ps:0',
        'left out: notebook, tensorboard'),
    'Google': (
        {'cluster': {'chief': ['a:1'], 'ps': ['c:1']}, 'environment': 'google',
         'task': {'type': 'chief', 'index': 0}},
        {'chief': ['a:1'], 'ps': ['c:1']}, 'chief:0', '1 that train'),
}


@pytest.mark.parametrize('name', FORMS)
def test_what_launchers_write_is_read_and_explained(name, monkeypatch):
  value, cluster, task, explained = FORMS[name]
  monkeypatch.setenv('TF_CONFIG', json.dumps(value))
  read, of_process = cluster_config.read()
  assert read == cluster
  assert (of_process and of_process.name) == task
  assert explained in cluster_config.explain()


@pytest.mark.parametrize('name', FORMS)
def test_strategies_read_the_same(name, monkeypatch):
  value, cluster, task, _ = FORMS[name]
  monkeypatch.setenv('TF_CONFIG', json.dumps(value))
  explained = cluster_config.explain()
  resolver = cluster_config.resolver()
  renamed = {'master': 'chief'}
  expected = {renamed.get(job, job): addresses
              for job, addresses in cluster.items()}
  assert resolver.cluster_spec().as_dict() == expected
  if task:
    job, index = task.split(':')
    assert (resolver.task_type, resolver.task_id) == (
        renamed.get(job, job), int(index))
  # Read again, it is the same, and what is said of it too.
  cluster_config.resolver()
  assert cluster_config.read()[0] == expected
  assert cluster_config.explain() == explained


@pytest.mark.parametrize('value, is_set', [
    (None, False), (' ', False), ('{}', True),
    (json.dumps({'cluster': CLUSTER, 'task': {'type': 'ps'}}), True)])
def test_a_launcher_has_started_a_process_with_tf_config(
    value, is_set, monkeypatch):
  monkeypatch.delenv('TF_CONFIG', raising=False)
  if value is not None:
    monkeypatch.setenv('TF_CONFIG', value)
  assert cluster_config.is_set() == is_set


@pytest.mark.parametrize('make', [
    distribute.ElasticAverageStrategy,
    lambda: distribute.DropStaleGradientStrategy(staleness=1)])
def test_an_evaluator_needs_no_ps_beside_a_chief_alone(monkeypatch, make):
  for workers in ([], ['127.0.0.1:21003']):
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': {'chief': ['127.0.0.1:21001'], 'worker': workers},
        'task': {'type': 'evaluator', 'index': 0}}))
    if workers:
      with pytest.raises(ValueError, match='must have a `ps`'):
        make()
    else:
      make()


@pytest.mark.parametrize('make', [
    lambda: distribute.TowerStrategy(['/cpu:0']),
    lambda: distribute.CrossShardStrategy(['/cpu:0']),
    lambda: distribute.VariableClippingStrategy(
        tf1.distribute.MirroredStrategy(['/cpu:0']), {'w': 0}, 1.0),
    distribute.ElasticAverageStrategy,
    lambda: distribute.DropStaleGradientStrategy(staleness=1),
    lambda: distribute.VariableClippingStrategy(
        distribute.DropStaleGradientStrategy(staleness=1), {'w': 0}, 1.0)],
                         ids=['tower', 'cross_shard', 'clip_mirrored',
                              'elastic', 'drop_stale', 'clip'])
@pytest.mark.parametrize('job, only_trains', [
    ('chief', True), ('worker', True), ('master', False), (None, False)])
def test_every_strategy_makes_the_only_task_a_process_alone(
    job, only_trains, make, monkeypatch):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {job: ['algo-1']} if job else {}, 'environment': 'cloud',
      'task': {'type': job, 'index': '0'} if job else {'trial': '1'}}))
  assert cluster_config.only_trains() == only_trains
  strategy = make()
  assert cluster_config.only_trains() == only_trains
  config = tf.estimator.RunConfig('unused', train_distribute=strategy)
  assert not config.cluster_spec and config.is_chief
  assert cluster_task.from_config(config) == cluster_task.ClusterTask()


def test_a_cluster_before_does_not_decide_for_a_process_alone(monkeypatch):
  """As in a notebook that has trained as the chief of a cluster."""
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'chief': ['a:1']}, 'task': {'type': 'chief', 'index': 0}}))
  cluster_config.rewrite()
  assert cluster_config.only_trains()
  monkeypatch.setenv('TF_CONFIG', '{}')
  cluster_config.rewrite()
  assert not cluster_config.only_trains()


def test_a_rewritten_value_may_be_edited(monkeypatch):
  """As by a program that makes the values of other tasks from its own."""
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'master': ['a:1'], 'ps': ['b:1']},
      'task': {'type': 'master', 'index': 0}}))
  cluster_config.rewrite()
  written = os.environ['TF_CONFIG']
  cluster_config.rewrite()
  assert os.environ['TF_CONFIG'] == written and cluster_config.is_master()
  config = json.loads(written)
  config['task'] = {'type': 'ps', 'index': 0}
  monkeypatch.setenv('TF_CONFIG', json.dumps(config))
  for _ in range(2):
    assert not cluster_config.is_master()
    assert cluster_config.read()[1].name == 'ps:0'
    cluster_config.rewrite()


def test_a_clipped_strategy_of_several_hosts_keeps_its_cluster(monkeypatch):
  value = json.dumps({'cluster': {'worker': ['127.0.0.1:1']},
                      'task': {'type': 'worker', 'index': 0}})
  with tf.Graph().as_default():  # Without a server of its own.
    monkeypatch.setenv('TF_CONFIG', value)
    distribute.VariableClippingStrategy(
        tf.distribute.MultiWorkerMirroredStrategy(), {'w': 0}, 1.0)
  assert json.loads(os.environ['TF_CONFIG']) == json.loads(value)


@pytest.mark.parametrize('cluster, index, message', [
    ({'chief': ['a:1'], 'worker': ['b:1'], 'ps': ['c:1']}, 0,
     'must have no `ps`'),
    ({'worker': ['b:1'], 'ps': ['c:1']}, 0, 'must have no `ps`.*Leave out'),
    ({'chief': ['a:1'], 'worker': {'3': 'b:1'}}, 3,
     'numbered from 0.*Received: worker:3. Make'),
])
def test_shards_refuse_a_cluster_that_they_cannot_connect(
    monkeypatch, cluster, index, message):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': cluster, 'task': {'type': 'worker', 'index': index}}))
  with pytest.raises(ValueError, match=message):
    distribute.CrossShardStrategy(['/cpu:0'])


def test_shards_of_several_processes_are_created_before_a_model(monkeypatch):
  """A program whose Keras model is built before its configuration."""
  monkeypatch.setenv('TF_CONFIG', cluster_config.encode(
      {'worker': ['127.0.0.1:1', '127.0.0.1:2']},
      cluster_config.Task('worker', 0)))
  tf.constant(1.0)
  with pytest.raises(RuntimeError, match='before .*Create it at the start'):
    distribute.CrossShardStrategy(['/cpu:0'])
