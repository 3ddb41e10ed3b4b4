# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What elastic averaging keeps, changes and saves of a user's spec."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tfplugin.estimator import elastic_average

tf1 = tf.compat.v1
TRAIN = tf.estimator.ModeKeys.TRAIN


def _frozen():
  return tf1.train.GradientDescentOptimizer(0.0)


def _with(scaffold=None, make_optimizer=_frozen, **fields):
  """A decorated regression whose spec has more; `scaffold` makes its own."""

  @elastic_average(communication_period=2, moving_rate=0.5)
  def model_fn(features, labels, mode):
    spec = decorated_models.regression(make_optimizer=make_optimizer)(
        features, labels, mode)
    return spec._replace(
        scaffold=scaffold() if scaffold else None, **fields)

  return model_fn


def _build(model_fn):
  """Returns the spec of a call in the default graph."""
  tf1.train.get_or_create_global_step()
  return decorated_models.call(model_fn, TRAIN, tf.ones([4, 2]),
                               tf.ones([4, 1]))


def _saved(saver, directory):
  with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    path = (saver or tf1.train.Saver()).save(session, str(directory / 'x'))
  return sorted(name for name, _ in tf.train.list_variables(path))


def test_returns_a_new_spec_and_keeps_the_users_hooks():
  hook, chief_hook = tf1.train.SessionRunHook(), tf1.train.SessionRunHook()
  own = []

  @elastic_average
  def model_fn(features, labels, mode):
    spec = decorated_models.regression()(features, labels, mode)
    own.append(spec._replace(training_hooks=(hook,),
                             training_chief_hooks=(chief_hook,),
                             scaffold=tf1.train.Scaffold()))
    return own[0]

  with tf.Graph().as_default():
    spec = _build(model_fn)
  assert spec is not own[0]
  assert own[0].training_hooks == (hook,)
  assert own[0].scaffold.saver is None
  assert own[0].scaffold is spec.scaffold  # Hooks of the program may have it.
  assert hook in spec.training_hooks
  assert spec.training_chief_hooks == (chief_hook,)
  assert spec.train_op is not own[0].train_op


def test_scaffold_without_a_saver_keeps_the_rest():
  ops = {}

  def scaffold():
    ops.update({name: tf.no_op(name) for name in ('init_op', 'ready')})
    return tf1.train.Scaffold(
        init_op=ops['init_op'], ready_op=ops['ready'],
        init_feed_dict={'a': 1}, summary_op=tf.constant('s'))

  with tf.Graph().as_default():
    spec = _build(_with(scaffold))
  assert spec.scaffold.init_op is ops['init_op']
  assert spec.scaffold.ready_op is ops['ready']
  assert spec.scaffold.init_feed_dict == {'a': 1}
  # The default Saver is made when every variable exists, hooks' included.
  assert spec.scaffold.saver is None


def test_hooks_and_an_init_fn_use_the_scaffold(tmp_path, behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    weight = tf1.get_variable('weight', initializer=[[7.0], [8.0]])
    session.run(weight.initializer)
    path = tf1.train.Saver().save(session, str(tmp_path / 'pretrained'))

  def model_fn(features, labels, mode):
    spec = decorated_models.regression(make_optimizer=_frozen)(
        features, labels, mode)
    scaffold = tf1.train.Scaffold(
        saver=tf1.train.Saver([v for v in tf1.trainable_variables()
                               if v.op.name == 'weight']),
        init_fn=lambda scaffold, session: scaffold.saver.restore(session, path))
    tf1.summary.scalar('mine', spec.loss)
    return spec._replace(scaffold=scaffold, training_hooks=[
        tf1.train.SummarySaverHook(save_steps=1, scaffold=scaffold,
                                   output_dir=str(tmp_path / 'summaries'))])

  values = decorated_models.train(elastic_average(model_fn), 2)
  np.testing.assert_array_equal(values['weight'], [[7.0], [8.0]])
  written = [value.tag for file in (tmp_path / 'summaries').iterdir()
             for event in tf1.train.summary_iterator(str(file))
             for value in event.summary.value]
  assert written.count('mine') == 2


def test_init_fn_sets_the_centre(behavior):
  def init_fn(scaffold, session):
    del scaffold
    weight, = [v for v in tf1.trainable_variables() if v.op.name == 'weight']
    weight.load([[7.0], [8.0]], session)

  values = decorated_models.train(
      _with(lambda: tf1.train.Scaffold(init_fn=init_fn)), 1)
  for name in ('weight', 'global_center_variable/weight'):
    np.testing.assert_array_equal(values[name], [[7.0], [8.0]])
  # The bias, which it leaves alone, starts as ever.
  assert values['global_center_variable/bias'] == 0.125


def test_local_init_op_is_run_and_the_copies_too(behavior):
  def scaffold():
    flag = tf1.get_local_variable('flag', initializer=1.0)
    counter = tf1.get_local_variable('counter', initializer=0.0)
    return tf1.train.Scaffold(local_init_op=tf.group(
        flag.initializer, counter.assign(5.0)))

  values = decorated_models.train(_with(
      scaffold, make_optimizer=decorated_models.momentum), 1)
  assert values['flag'] == 1.0
  assert values['counter'] == 5.0
  assert values['local_step'] == 1


def test_custom_saver_saves_the_centre(behavior, tmp_path):
  def scaffold():
    return tf1.train.Scaffold(saver=tf1.train.Saver(
        tf1.trainable_variables(), max_to_keep=7))

  with tf.Graph().as_default():
    spec = _build(_with(scaffold))
    assert _saved(spec.scaffold.saver, tmp_path) == ['bias', 'weight']
    assert spec.scaffold.saver.saver_def.max_to_keep == 7


def test_saver_of_some_global_variables_saves_the_centre_by_its_copys_name(
    behavior, tmp_path):
  def scaffold():
    return tf1.train.Scaffold(saver=tf1.train.Saver(
        [v for v in tf1.global_variables() if 'bias' not in v.op.name]))

  with tf.Graph().as_default():
    spec = _build(_with(scaffold, make_optimizer=decorated_models.momentum))
    assert _saved(spec.scaffold.saver, tmp_path) == [
        'global_step', 'weight', 'weight/Momentum']


def test_default_saver_of_the_user_saves_all(behavior, tmp_path):
  with tf.Graph().as_default():
    spec = _build(_with(
        lambda: tf1.train.Scaffold(saver=tf1.train.Saver(max_to_keep=3)),
        make_optimizer=decorated_models.momentum))
    assert _saved(spec.scaffold.saver, tmp_path) == [
        'bias', 'bias/Momentum', 'global_step', 'weight', 'weight/Momentum']
    assert spec.scaffold.saver.saver_def.max_to_keep == 3


def test_parts_of_a_variable_are_saved_as_one(behavior, tmp_path):
  @elastic_average
  def model_fn(features, mode):
    table = tf1.get_variable(
        'table', [4, 2], tf.float64,
        tf1.constant_initializer(3.0),
        partitioner=tf1.fixed_size_partitioner(2))
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [0, 3])) + (
        tf.cast(tf.reduce_sum(features), tf.float64))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=(
        decorated_models.momentum().minimize(
            loss, tf1.train.get_global_step())))

  with tf.Graph().as_default():
    spec = _build(model_fn)
    assert _saved(spec.scaffold.saver, tmp_path) == [
        'global_step', 'table', 'table/Momentum']
  checkpoint = tf.train.load_checkpoint(str(tmp_path / 'x'))
  np.testing.assert_array_equal(checkpoint.get_tensor('table'),
                                np.full([4, 2], 3.0))


class _OtherSaver(tf1.train.Saver):
  """A class of a user."""


def test_saver_of_another_class_saves_the_centre(tmp_path):
  with tf.Graph().as_default():
    spec = _build(_with(lambda: tf1.train.Scaffold(saver=_OtherSaver())))
    assert type(spec.scaffold.saver) is _OtherSaver
    assert _saved(spec.scaffold.saver, tmp_path) == [
        'bias', 'global_step', 'weight']


def test_checkpoint_hook_of_the_user_saves_the_centre(behavior, tmp_path):
  del behavior
  hook = tf1.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
  values = decorated_models.train(_with(
      make_optimizer=decorated_models.momentum, training_chief_hooks=(hook,)),
                                  steps=3)
  saved = tf.train.load_checkpoint(str(tmp_path))
  for name in ('weight', 'bias'):
    np.testing.assert_array_equal(
        saved.get_tensor(name), values[f'global_center_variable/{name}'])
  assert not np.array_equal(values['weight'],
                            values['global_center_variable/weight'])


CLUSTER = {'chief': ['a:1'], 'worker': ['b:1', 'c:1'], 'ps': ['d:1']}


@pytest.mark.parametrize('task', [('chief', 0), ('worker', 1)])
def test_variables_of_a_cluster_stay_on_its_servers(monkeypatch, task):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': CLUSTER, 'task': {'type': task[0], 'index': task[1]}}))
  config, own = tf.estimator.RunConfig(), '/job:{}/task:{}'.format(*task)
  setter = tf1.train.replica_device_setter(
      cluster=config.cluster_spec, worker_device=own)
  with tf.Graph().as_default(), tf1.device(setter):
    tf1.train.get_or_create_global_step()
    elastic_average(decorated_models.regression())(
        features=tf.ones([4, 2]), labels=tf.ones([4, 1]), mode=TRAIN,
        config=config)
    saved = {v.op.name: v.device for v in tf1.global_variables()}
    local = {v.op.name: v.device for v in tf1.local_variables()}
  state = {'weight/Momentum', 'bias/Momentum'}
  shared = {'global_step', 'weight', 'bias'}
  assert set(saved) == shared | (state if task[0] == 'chief' else set())
  assert set(local) == {'local_step', 'weight', 'bias'} | (
      set() if task[0] == 'chief' else state)
  assert all(device.startswith(own) for device in local.values())
  for name, device in saved.items():
    assert device.startswith('/job:ps' if name in shared else own)


@pytest.mark.parametrize('num_worker, cluster, words', [
    (2, CLUSTER, '`num_worker` must be at least'),
    (None, {'chief': ['a:1'], 'worker': ['b:1']}, 'needs a parameter server')])
def test_clusters_that_cannot_be_are_refused(
    monkeypatch, num_worker, cluster, words):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': 'worker', 'index': 0}}))
  decorated = elastic_average(
      decorated_models.regression(), num_worker=num_worker)
  with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
    tf1.train.get_or_create_global_step()
    decorated(features=tf.ones([4, 2]), labels=tf.ones([4, 1]), mode=TRAIN,
              config=tf.estimator.RunConfig())
