# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Untrained variables: from data, set from outside, or counted by the step."""

import logging

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin import optimizers
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_SETTINGS = {'communication_period': 2, 'moving_rate': 0.125}
STRATEGIES = {
    'decorator': lambda: None,
    'strategy': lambda: distribute.ElasticAverageStrategy(**_SETTINGS),
    'devices': lambda: distribute.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'], **_SETTINGS),
}


class _Lower(tf1.train.SessionRunHook):
  """Sets the rate to 0 after the first step; notes it in each step."""

  def __init__(self, rate):
    self._fetch = rate.value()
    self._set = tf.group(rate.assign(0.0))
    self.seen = []

  def before_run(self, run_context):
    return tf1.train.SessionRunArgs(self._fetch)

  def after_run(self, run_context, run_values):
    self.seen.append(float(run_values.results))
    if len(self.seen) == 1:
      run_context.session.run(self._set)


def _train(tmp_path, form, steps,
           make_optimizer=tf1.train.GradientDescentOptimizer):
  hooks = []

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    rate = tf1.get_variable('rate', initializer=1.0, trainable=False)
    mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    hooks.append(_Lower(rate))
    loss = w * tf.reduce_mean(features)
    update = make_optimizer(rate).minimize(
        loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, training_hooks=[hooks[-1]],
        train_op=tf.group(update, mean.assign_add(tf.reduce_mean(features))))

  if form == 'decorator':
    model_fn = estimator_lib.elastic_average(**_SETTINGS)(model_fn)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path), tf1.estimator.RunConfig(
          train_distribute=STRATEGIES[form]()))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(),
      max_steps=steps)
  # Devices build a hook each, of which the first one's is run.
  return max((hook.seen for hook in hooks), key=len), estimator


@pytest.mark.parametrize('form', STRATEGIES)
def test_what_a_hook_sets_is_shared_and_a_statistic_averaged(
    form, tmp_path, behavior, caplog):
  del behavior
  with caplog.at_level(logging.INFO, 'tensorflow'):
    seen, estimator = _train(tmp_path, form, 2)
  assert seen == [1.0, 0.0, 0.0, 0.0]
  assert estimator.get_variable_value('rate') == 0.0
  # Copy 2, centre 0 -> 1.75, .25; then 3.75 -> 3.3125, .6875; devices: twice.
  center, copy, num_copies = 0.0, 0.0, 2 if form == 'devices' else 1
  for _ in range(2):
    copy += 2.0
    difference = 0.125 * (copy - center)
    copy, center = copy - difference, center + num_copies * difference
  assert estimator.get_variable_value('mean') == center
  line, = {r.getMessage() for r in caplog.records
           if r.getMessage().startswith('Elastic averaging: ')}
  assert 'trained and averaged: w; statistics, averaged: mean; ' in line
  assert 'shared: rate, global_step;' in line


def _kinds(caplog):
  """Returns the names of each kind in the line that a start logs."""
  line, = {r.getMessage() for r in caplog.records
           if r.getMessage().startswith('Elastic averaging: ')}
  kinds = (kind.split(': ') for kind in line.split(': ', 1)[1][:-1].split('; '))
  return {kind: set(names.split(', ')) for kind, names in kinds}


_SLOTS = {'beta1_power', 'beta2_power', 'w/Adam', 'w/Adam_1'}


@pytest.mark.parametrize('form', STRATEGIES)
def test_the_chiefs_slots_are_logged_as_local(form, tmp_path, behavior, caplog):
  del behavior
  with caplog.at_level(logging.INFO, 'tensorflow'):
    _train(tmp_path, form, 1, tf1.train.AdamOptimizer)
  kinds = _kinds(caplog)
  assert kinds.pop('local to each worker') >= _SLOTS
  assert kinds == {'trained and averaged': {'w'},
                   'statistics, averaged': {'mean'},
                   'shared': {'rate', 'global_step'},
                   'counted by each worker': {'none'}}


def test_slots_of_the_wrapper_are_logged_as_local(behavior, caplog):
  del behavior
  with tf.Graph().as_default():
    getter = optimizers.ElasticAverageCustomGetter('')
    with tf1.variable_scope('', custom_getter=getter):
      w = tf1.get_variable('w', initializer=0.0)
    optimizer = optimizers.ElasticAverageOptimizer(
        tf1.train.AdamOptimizer(0.1), 1, getter, rho=0.0)
    optimizer.minimize(w * w, tf1.train.create_global_step())
    with caplog.at_level(logging.INFO, 'tensorflow'):
      optimizer.make_session_run_hook(True, 0).begin()
  kinds = _kinds(caplog)
  assert kinds['shared'] == {'global_step'}
  assert kinds['local to each worker'] >= _SLOTS
  assert kinds['trained and averaged'] == {'global_center_variable/w'}


def test_what_one_worker_sets_reaches_the_others(behavior):
  """Two workers of a cluster; each makes the steps that it is told to."""
  del behavior
  cluster = clusters.in_process_cluster(2)
  workers = []
  for index in range(2):
    set_mask, masks = [], []
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster.cluster_spec, task_type='worker', task_id=index)
    strategy = distribute.ElasticAverageStrategy(resolver, **_SETTINGS)
    with tf.Graph().as_default() as graph, strategy.scope():
      tf1.train.create_global_step()

      def step(features, masks=masks, set_mask=set_mask):
        w = tf1.get_variable('w', initializer=0.0)
        mask = tf1.get_variable('mask', initializer=[1.0, 1.0],
                                trainable=False)
        set_mask.append(tf.group(mask.assign([0.0, 1.0])))
        masks.append(mask.value())
        loss = w * features
        return tf.estimator.EstimatorSpec(
            'train', loss=loss, train_op=tf1.train.GradientDescentOptimizer(
                0.5).minimize(loss, tf1.train.get_global_step()))

      spec = strategy.extended.call_for_each_replica(
          tf.autograph.experimental.do_not_convert(step), args=(1.0,))
      init = tf1.global_variables_initializer()
      local = [tf1.local_variables_initializer(), tf1.tables_initializer()]
    session = cluster.session(index, graph)
    if not index:
      session.run(init)
    session.run(local)
    workers.append((session, spec.train_op, masks[0], set_mask[0]))

  def run(index, what):
    session = workers[index][0]
    return session.run(workers[index][what])

  run(0, 3)  # The first worker sets its mask, and exchanges.
  run(0, 1)
  run(0, 1)
  np.testing.assert_array_equal(run(0, 2), [0.0, 1.0])
  np.testing.assert_array_equal(run(1, 2), [1.0, 1.0])
  run(1, 1)
  run(1, 1)
  np.testing.assert_array_equal(run(1, 2), [0.0, 1.0])
  for session, *_ in workers:
    session.close()


def _counting_model():
  """Returns a model_fn whose step writes untrained variables."""

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    position, decayed, conditional, copied, mean, noise, followed, trained = (
        tf1.get_variable(name, initializer=1.0, trainable=False) for name in (
            'position', 'decayed', 'conditional', 'copied', 'mean', 'noise',
            'followed', 'trained'))
    x = tf.reduce_mean(features)
    loss = w * x

    def counted():
      with tf.control_dependencies([conditional.assign_add(1.0)]):
        return tf.constant(1)

    update = tf1.train.GradientDescentOptimizer(0.5).minimize(
        loss, tf1.train.get_global_step())
    written = [
        position.assign_add(1.0), decayed.assign(decayed * 0.5),
        tf.cond(x > 0.0, counted, lambda: tf.constant(0)),
        copied.assign(position * 2.0),
        mean.assign_add(x), noise.assign(tf1.random_uniform([], 1.0, 2.0)),
        followed.assign(mean), trained.assign(w + 1.0)]
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(update, written))

  return model_fn


@pytest.mark.parametrize('form', STRATEGIES)
def test_what_the_step_writes_from_no_data_is_never_averaged(
    form, tmp_path, behavior, caplog):
  """A period of 2 and four steps: an average of a counter is no integer."""
  del behavior
  model_fn = _counting_model()
  if form == 'decorator':
    model_fn = estimator_lib.elastic_average(**_SETTINGS)(model_fn)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path), tf1.estimator.RunConfig(
          train_distribute=STRATEGIES[form]()))
  with caplog.at_level(logging.INFO, 'tensorflow'):
    estimator.train(
        lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(),
        max_steps=2)
  line, = {r.getMessage() for r in caplog.records
           if r.getMessage().startswith('Elastic averaging: ')}
  assert 'statistics, averaged: mean, noise, followed, trained; ' in line
  assert ('counted by each worker: position, decayed, conditional, copied; '
          in line)
  assert [estimator.get_variable_value(name) for name in (
      'position', 'decayed', 'conditional')] == [5.0, 0.0625, 5.0]
  assert estimator.get_variable_value('mean') < 5.0


def test_a_statistic_of_an_input_that_is_a_constant_is_averaged(tmp_path):
  """Estimator allows an input_fn that returns tensors; strategies do not."""

  @estimator_lib.elastic_average(**_SETTINGS)
  def model_fn(features, labels, mode):
    del labels
    mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    loss = tf1.get_variable('w', initializer=0.0) * 2.0
    update = tf1.train.GradientDescentOptimizer(0.5).minimize(
        loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(
        update, mean.assign(tf.reduce_mean(features))))

  estimator = tf1.estimator.Estimator(model_fn, str(tmp_path))
  estimator.train(lambda: (tf.constant([8.0]), tf.constant([1.0])), max_steps=1)
  assert estimator.get_variable_value('mean') == 1.0  # 0.125 * 8


def test_each_worker_of_a_getter_counts_by_itself(behavior):
  """Two workers of a cluster; the first makes 4 steps, the second makes 2."""
  del behavior
  cluster = clusters.in_process_cluster(2)
  workers = []
  for index in range(2):
    device = f'/job:worker/task:{index}'
    getter = tfplugin.ElasticAverageCustomGetter(device)
    with tf.Graph().as_default() as graph, tf1.device(
        tf1.train.replica_device_setter(
            cluster=cluster.cluster_spec, worker_device=device)):
      x = tf1.placeholder_with_default([2.0], [1])
      with tf1.variable_scope('', custom_getter=getter):
        w = tf1.get_variable('w', initializer=0.0)
        position, mean = (tf1.get_variable(
            name, initializer=0.0, trainable=False)
                          for name in ('position', 'mean'))
      for write in (position.assign_add(1.0), mean.assign(tf.reduce_mean(x))):
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, write)
      optimizer = tfplugin.ElasticAverageOptimizer(
          tf1.train.GradientDescentOptimizer(0.5), 2, getter, rho=0.0,
          **_SETTINGS)
      with tf.control_dependencies(
          tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(w * tf.reduce_sum(x))
      init = [tf1.global_variables_initializer(),
              tf1.local_variables_initializer(), optimizer.get_init_op(index)]
      center, = (pair.center.read_value() for pair in getter.pairs
                 if pair.local is position)
    session = cluster.session(index, graph)
    for op in init[bool(index):]:
      session.run(op)
    workers.append((session, train_op, position, mean, center))
  for index, steps in ((0, 4), (1, 2)):
    for _ in range(steps):
      workers[index][0].run(workers[index][1])
  assert [w[0].run(w[2]) for w in workers] == [4.0, 2.0]
  assert [w[0].run(w[4]) for w in workers] == [2.0, 2.0]
  assert workers[0][0].run(workers[0][3]) < 2.0  # The mean is averaged.
  for session, *_ in workers:
    session.close()
